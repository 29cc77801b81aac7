/** What stands behind each error that a visitor can be shown, and what to do about it: the words of its reference. */
import type { VisitorErrorCode } from './visitor-errors.ts'

export interface VisitorErrorAdvice {
  readonly when: string
  /** For whoever runs the edge or the agent, unless the visitor is named. */
  readonly remedy: string
}

export const visitorErrorAdvice: Readonly<Record<VisitorErrorCode, VisitorErrorAdvice>> = {
  BAD_VISITOR_REQUEST: {
    when: 'Something in the request can be read in two ways or not at all: its line, a header, its length, its `Host`, its path.',
    remedy: 'Look at what the client sends, and at what stands between it and the server; `curl -v` shows a good one.',
  },
  AMBIGUOUS_PATH: {
    when: 'Depending on how a server decodes the path, merges slashes, resolves `..` or drops `;…`, it belongs to different routes of this edge; or a module of its route decides by the path, and it has more than one reading.',
    remedy:
      'The visitor: write the path as the service means it; `/a/../b` is `/b`, `/%61` is `/a`. An edge with one route for `/` takes such paths, unless a module of it reads them.',
  },
  REQUEST_HEAD_TIMEOUT: {
    when: 'A request began, and its headers did not come to an end within `--header-timeout`, 15 seconds by default.',
    remedy: 'The visitor: try again. When all requests end like this, look for what holds bytes back on the way.',
  },
  REQUEST_BODY_TIMEOUT: {
    when: 'A module waits for the whole body, and nothing more of it came for five minutes.',
    remedy: 'The visitor: send it again, and all of it.',
  },
  REQUEST_HEAD_TOO_LARGE: {
    when: 'The request line and headers are larger than `--max-header-bytes`, 64 KiB by default, or there are more headers than `--max-headers`, 100 by default.',
    remedy: 'The visitor: delete the cookies of this name. The service: set fewer and smaller ones.',
  },
  HTTP_VERSION_UNSUPPORTED: {
    when: 'The request line names another version of HTTP.',
    remedy: 'The visitor: use a client that speaks HTTP/1.1 or HTTP/2.',
  },
  EXPECTATION_FAILED: {
    when: 'The header `Expect` asks for something else.',
    remedy: 'Leave that header out.',
  },
  MISDIRECTED: {
    when: 'The connection was made to another edge than the one that `Host` names, or the edge asks for other TLS by now.',
    remedy:
      'Browsers open a new connection by themselves. Other clients: send in the handshake the name that `Host` has.',
  },
  ENDPOINT_OFFLINE: {
    when: 'No edge and no agent serves this name, or its agent has just gone.',
    remedy:
      'Start the agent, look whether it says `online` with this very name, and that edges have it in `hostports`.',
  },
  NO_ROUTE: {
    when: 'The edge serves this name, and none of its routes the path.',
    remedy: 'Add a route; `path_prefix` of `/` takes all that no other takes.',
  },
  NO_BACKEND: {
    when: 'The route, or the TCP or TLS edge, has no backend, or its backend is disabled.',
    remedy: 'Set the module `backend`.',
  },
  BACKEND_OFFLINE: {
    when: 'No tunnel with the labels of the tunnel group is online, and no other backend could step in.',
    remedy: 'Start an agent with these labels; `GET /tunnels` shows which are online.',
  },
  BACKEND_BUSY: {
    when: 'The agent has as many connections open as it takes, or does not accept this one.',
    remedy: 'Try again; start more agents with the same labels.',
  },
  SERVER_BUSY: {
    when: 'The server has as many connections as `--max-connections` or `--max-connections-per-source` allow, or the visitor sends more requests a second than `--max-requests-per-source`.',
    remedy:
      'The visitor: wait as `Retry-After` says. Raise the limit if it is too low; the log names it once a minute.',
  },
  EDGE_STARTING: {
    when: 'The modules of the edge are still being compiled: it was just made, or the server has just started.',
    remedy: 'The visitor: try again, as `Retry-After` says. When it stays like this, look at the log of the server.',
  },
  MODULE_UNAVAILABLE: {
    when: 'An enabled module cannot be compiled, cannot be opened with the key that the server has, or is not enforced yet.',
    remedy: 'The log names module and reason. Set the module anew, or delete it if nothing needs to be guarded.',
  },
  UPSTREAM_UNREACHABLE: {
    when: 'The service refuses connections, or closed one before it answered.',
    remedy: 'Start the service, and see that it listens where the backend or the agent looks for it.',
  },
  UPSTREAM_INVALID: {
    when: 'What came back is not HTTP, or its headers are larger than 64 KiB.',
    remedy: 'Look whether the port is that of the service, and whether it wants TLS: `https://` before its address.',
  },
  UPSTREAM_TIMEOUT: {
    when: 'The service did not accept a connection in ten seconds, or nothing moved for five minutes before it answered.',
    remedy: 'See what keeps the service; let long work answer early, or send something now and then.',
  },
  CLIENT_CERTIFICATE_REQUIRED: {
    when: 'The certificate of a visitor is missing or over. Only the access log shows this code: TLS ends with an alert.',
    remedy: 'The visitor: show a certificate that an authority of the module `mutual_tls` has issued.',
  },
  IP_REFUSED: {
    when: 'The policies of `ip_restriction` do not allow the address of the visitor, or deny it.',
    remedy:
      'Add a rule for it. Behind a load balancer set `--trusted-proxies`, or its own address is the one that counts.',
  },
  USER_AGENT_REFUSED: {
    when: 'The module `user_agent_filter` denies the `User-Agent` of the visitor, and allows it nowhere.',
    remedy: 'Change the patterns of the module.',
  },
  WEBHOOK_REFUSED: {
    when: 'The module `webhook_verification` finds no signature, or one that is not made with its secret, or one that is too old.',
    remedy: 'Compare `provider` and `secret` with what the sender has; see that the clock is right.',
  },
  BODY_TOO_LARGE_TO_CHECK: {
    when: 'The body of a webhook is larger than 10 MiB.',
    remedy: 'Let the sender send less, or serve this path by a route without the module.',
  },
  BODY_MEMORY_FULL: {
    when: 'A module has to read the body, and the memory for that, or the share of this edge or visitor, is in use.',
    remedy: 'The sender: try again after `Retry-After`. The operator: raise `--body-memory` where this happens often.',
  },
  CREDENTIALS_REQUIRED: {
    when: 'The endpoint has basic auth, and user or password are missing or wrong.',
    remedy: 'The visitor: log in as the agent was told with `basic_auth`.',
  },
  CIRCUIT_OPEN: {
    when: 'The service failed as often as the module `circuit_breaker` allows; the header `Retry-After` says how long it rests.',
    remedy: 'Mend the service; requests pass again by themselves once one of them succeeds.',
  },
  WEBSOCKET_REQUIRED: {
    when: 'The route has `websocket_tcp_converter`, and the request does not open a WebSocket.',
    remedy: 'The visitor: connect with a WebSocket client.',
  },
  BROKEN_MODULE: {
    when: 'A module, or the server itself, failed at this request; nothing passed.',
    remedy: 'The log has a line with the cause. It is a fault of the server: please report it.',
  },
}
