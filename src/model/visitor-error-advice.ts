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
    when: 'An enabled module cannot be compiled, or cannot be opened with the key that the server has.',
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
  LOGIN_STATE_MISSING: {
    when: 'The callback of a login was opened without a `state`, or with several.',
    remedy: 'The visitor: open the page that is wanted, not the callback. See that the provider gives `state` back.',
  },
  LOGIN_STATE_INVALID: {
    when: 'The `state` at the callback was changed, was made for another edge or route, or under another key of the server.',
    remedy:
      'The visitor: open the page again. When it happens each time, see whether the redirect URI leads to this edge.',
  },
  LOGIN_STATE_EXPIRED: {
    when: 'More than 15 minutes passed between the beginning of a login and its end.',
    remedy: 'The visitor: open the page again. When it happens at once, set the clock of the server.',
  },
  LOGIN_WRONG_HOST: {
    when: 'A login began at one name of the edge and came back to another.',
    remedy: 'Register `https://<name>/oauth2/callback` at the provider for every name of the edge.',
  },
  LOGIN_OTHER_BROWSER: {
    when: 'The cookie that ties a login to its browser is missing or not that of this login; also when a callback is loaded again.',
    remedy: 'The visitor: allow cookies for this name, and open the page again.',
  },
  LOGIN_CODE_REFUSED: {
    when: 'The provider answered `invalid_grant`: the code was used before, is too old, or is for another redirect URI.',
    remedy: 'The visitor: open the page again. When it happens each time, compare the redirect URI at the provider.',
  },
  LOGIN_DENIED: {
    when: 'The provider sent the visitor back with `access_denied`.',
    remedy: 'The visitor: try again and agree. See who may use the application at the provider.',
  },
  LOGIN_NOT_ALLOWED: {
    when: 'None of the lists of the module `oauth`, or of the agent, names the user by an address that the provider has verified.',
    remedy: 'Add the user to a list. The visitor: `/postern/login` logs in as somebody else.',
  },
  LOGIN_TOKEN_REFUSED: {
    when: 'The ID token is not signed by a key of the provider, or is for another client, another login or another time.',
    remedy: 'The log names the reason. Compare `issuer` and `client_id` with what the provider has; set the clock.',
  },
  LOGIN_CLAIMS_REFUSED: {
    when: 'The provider gave no usable id of the user.',
    remedy: 'See what the provider tells this application about its users.',
  },
  LOGIN_PROVIDER_ERROR: {
    when: 'The provider sent the visitor back with an error other than `access_denied`.',
    remedy: 'The log names the error. Often a scope or the redirect URI is not registered at the provider.',
  },
  LOGIN_PROVIDER_DOWN: {
    when: 'The discovery document of the provider cannot be read, or the provider cannot be asked whether a user may still come in.',
    remedy: 'The log names the reason. For a provider on a private network set `--outbound-allow`.',
  },
  LOGIN_EXCHANGE_FAILED: {
    when: 'The provider did not exchange the code of a login, or did not tell about the user.',
    remedy: 'The log names the reason; `invalid_client` means that `client_id` or `client_secret` is wrong.',
  },
  LOGIN_NO_ID_TOKEN: {
    when: 'The token endpoint of the provider answered without `id_token`.',
    remedy: 'See that the provider speaks OpenID Connect, and OAuth not alone.',
  },
  LOGIN_STORE_DOWN: {
    when: 'The database does not answer, or too many strangers are looked up at once. Visitors whose login is in memory go on.',
    remedy: 'The visitor: try again after `Retry-After`. The operator: see why the database is away.',
  },
  LOGIN_ANSWER_UNREADABLE: {
    when: 'What the identity provider of a `saml` module posted is no SAML response: not base64, not XML, with a DTD or comments, or larger than 256 KiB.',
    remedy: 'The log names the reason. See that the identity provider answers with the HTTP-POST binding.',
  },
  LOGIN_ANSWER_ENCRYPTED: {
    when: 'The identity provider encrypts its assertions.',
    remedy: 'Turn the encryption of assertions off at the identity provider.',
  },
  LOGIN_ANSWER_UNSIGNED: {
    when: 'No signature by a key in the metadata of the identity provider covers the assertion: it is unsigned, changed, rearranged, signed by another key, or signed with SHA-1.',
    remedy:
      'The log names the reason. Let the identity provider sign with RSA and SHA-256, and renew `idp_metadata` when its certificate changed.',
  },
  LOGIN_ANSWER_ELSEWHERE: {
    when: 'Issuer, audience, recipient or the request that an assertion answers is another one than that of this login.',
    remedy:
      'The log names which. Compare `entity_id` and `assertion_consumer_service_url` of the module with what the identity provider has.',
  },
  LOGIN_ANSWER_OUTDATED: {
    when: 'An assertion is over, or does not hold yet; a minute of difference between the clocks is tolerated.',
    remedy: 'Set the clocks of the server and of the identity provider.',
  },
  LOGIN_ANSWER_REPEATED: {
    when: 'An assertion came a second time, as when a visitor reloads the page that posted it.',
    remedy: 'Open the page again.',
  },
  LOGIN_ANSWER_AMBIGUOUS: {
    when: 'An assertion does not have exactly one subject with one name, and one authentication statement.',
    remedy: 'See how the identity provider makes its assertions.',
  },
  LOGIN_TARGET_REFUSED: {
    when: 'A login that began at the identity provider came without a relay state that is a path, or a URL with the name it was posted to.',
    remedy: 'Set the relay state (also called target or start URL) of the application at the identity provider.',
  },
  CIRCUIT_OPEN: {
    when: 'The service failed as often as the module `circuit_breaker` allows; the header `Retry-After` says how long it rests.',
    remedy: 'Mend the service; requests pass again by themselves once one of them succeeds.',
  },
  RATE_LIMITED: {
    when: 'More requests came than a `rate-limit` rule of the policy allows; the header `Retry-After` says how long to wait.',
    remedy: 'The visitor: wait. Else raise `capacity` of the rule, or choose a `bucket_key` that tells visitors apart.',
  },
  TOKEN_REQUIRED: {
    when: 'A `jwt-validation` rule of the policy wants a token that the request does not have, or that is not valid.',
    remedy: 'The visitor: get a new token. The log says at level debug what is wrong with the one that came.',
  },
  KEYS_UNAVAILABLE: {
    when: 'A `jwt-validation` rule of the policy needs keys that its key sets do not give at the moment.',
    remedy: 'See that the server can reach the URLs in `additional_jkus`; the log names the reason.',
  },
  POLICY_REQUEST_FAILED: {
    when: 'An `http-request` rule of the policy with `on_error: halt` got no answer in its time, or one that is too long.',
    remedy:
      'The log names the host and the reason. An address that is not public is asked only where `--outbound-allow` covers it.',
  },
  POLICY_REQUEST_LOOP: {
    when: 'The request came from an `http-request` rule that was run for one of another such rule, and so on, three times over; its `CDN-Loop` header says so.',
    remedy: 'Let no `http-request` rule ask an address whose policy leads back to it.',
  },
  POLICY_FAILED: {
    when: 'An action of the policy failed, or its expressions cost more than a request may, so that a guard could not be asked; or a condition failed of a rule that finds out who a visitor is, or goes by what such a rule found.',
    remedy: 'The log names the rule and the reason. Mend or simplify the rule.',
  },
  CONNECTION_DENIED: {
    when: 'A rule of the policy of a TCP or TLS edge has `deny` or `close-connection`.',
    remedy: 'Nothing, if it is meant. Else see which rule applies.',
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
