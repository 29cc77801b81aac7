/** Every error that a visitor can see: code, status, the vendor's number, sentence, and for the reference its causes and remedy. */

interface VisitorError {
  readonly status: number
  /** The vendor's number for it. */
  readonly ngrok: number
  readonly text: string
  readonly when: string
  /** Addressed to the person who runs the edge or the agent, unless it begins by naming somebody else. */
  readonly remedy: string
}

const table = {
  BAD_VISITOR_REQUEST: error(400, 3001, {
    text: 'The request is not well-formed HTTP.',
    when: 'Something in the request can be read in two ways or not at all: its line, a header, its length, its `Host`, its path.',
    remedy: 'Check what the client sends, and any proxy between it and the server; `curl -v` shows a valid request.',
  }),
  AMBIGUOUS_PATH: error(400, 3001, {
    text: 'The path of this address can be read in different ways. Write it without `..`, `//`, `\\`, `;` and needless `%` escapes.',
    when: 'The path can be read in more than one way, depending on how a server decodes it, merges slashes, resolves `..` or drops `;…`. The readings belong to different routes of this edge, or a module of the route decides by the path.',
    remedy:
      'The visitor: write the path as the service means it; `/a/../b` is `/b`, `/%61` is `/a`. An edge with a single route for `/` accepts such paths, unless one of its modules decides by the path.',
  }),
  REQUEST_HEAD_TIMEOUT: error(408, 3001, {
    text: 'The request line and headers did not arrive in time.',
    when: 'A request began, and its headers were not complete within `--header-timeout`, 15 seconds by default.',
    remedy: 'The visitor: try again. If it happens to every request, look for a proxy on the way that delays bytes.',
  }),
  REQUEST_BODY_TIMEOUT: error(408, 3001, {
    text: 'The body of the request did not arrive in time.',
    when: 'A module needs the whole body, and no more of it came for five minutes.',
    remedy: 'The visitor: send the complete request again.',
  }),
  REQUEST_HEAD_TOO_LARGE: error(431, 3001, {
    text: 'The request line and headers are too large.',
    when: 'The request line and headers are larger than `--max-header-bytes`, 64 KiB by default, or there are more headers than `--max-headers`, 100 by default.',
    remedy: 'The visitor: delete the cookies of this site. The service: set fewer and smaller cookies.',
  }),
  HTTP_VERSION_UNSUPPORTED: error(505, 3001, {
    text: 'Only HTTP/1.0, HTTP/1.1 and HTTP/2 are supported here.',
    when: 'The request line names another version of HTTP.',
    remedy: 'The visitor: use a client that speaks one of these.',
  }),
  EXPECTATION_FAILED: error(417, 3001, {
    text: 'The only supported expectation is `100-continue`.',
    when: 'The header `Expect` asks for something else.',
    remedy: 'Leave that header out.',
  }),
  MISDIRECTED: error(421, 3200, {
    text: 'This name is served by another connection; open a new one for it.',
    when: 'The connection was made to another edge than the one that `Host` names, or the TLS settings of the edge have changed since.',
    remedy:
      'Browsers open a new connection by themselves. Other clients: send the same name in the TLS handshake as in `Host`.',
  }),
  ENDPOINT_OFFLINE: error(404, 3200, {
    text: 'Nothing is online at this address.',
    when: 'No edge and no agent serves this name, or its agent has just gone.',
    remedy: 'Start the agent and check that it says `online` with this very name. For an edge, check its `hostports`.',
  }),
  NO_ROUTE: error(404, 3209, {
    text: 'No route of this edge matches the path.',
    when: 'The edge serves this name, but none of its routes matches the path.',
    remedy: 'Add a route; a `path_prefix` of `/` matches every path that no other route matches.',
  }),
  NO_BACKEND: error(503, 724, {
    text: 'This route has no backend.',
    when: 'The route, or the TCP or TLS edge, has no backend, or its backend is disabled.',
    remedy: 'Set the module `backend`.',
  }),
  BACKEND_OFFLINE: error(503, 6528, {
    text: 'No agent that could serve this is online.',
    when: 'No tunnel with the labels of the tunnel group is online, and there is no other backend to fall back to.',
    remedy: 'Start an agent with these labels; `GET /tunnels` shows which are online.',
  }),
  BACKEND_BUSY: error(503, 743, {
    text: 'The agent accepts no more connections at the moment; try again.',
    when: 'The agent has reached its limit of connections, or does not accept this one.',
    remedy: 'Try again; start more agents with the same labels.',
  }),
  SERVER_BUSY: error(503, 743, {
    text: 'This server has reached a limit that its operator set; try again shortly.',
    when: 'The server has as many connections as `--max-connections` or `--max-connections-per-source` allow, or the visitor sends more requests a second than `--max-requests-per-source`.',
    remedy:
      'The visitor: wait as `Retry-After` says. Raise the limit if it is too low; the log names it once a minute.',
  }),
  NODE_UNREACHABLE: error(503, 722, {
    text: 'The part of the server that has this tunnel cannot be reached; try again shortly.',
    when: 'The agent is connected to another node of the server, which does not answer this one. Or it has left that node, and the database does not answer where it is now.',
    remedy:
      'The visitor: try again after `Retry-After`; an agent whose node is gone connects to another. The operator: check that nodes reach each other and the database; the log names the node and the reason.',
  }),
  EDGE_STARTING: error(503, 722, {
    text: 'This address is about to be served; try again in a moment.',
    when: 'The modules of the edge are still being compiled: it was just made, or the server has just started.',
    remedy: 'The visitor: try again after `Retry-After`. If it does not go away, look at the log of the server.',
  }),
  LOOK_UP_BUSY: error(503, 743, {
    text: 'The server could not find out in time who serves this address; try again in a moment.',
    when: 'Another node may serve the address, and the database did not say so: it does not answer, or more names are being looked up than a node looks up at once, or than the address of this visitor may have looked up while others wait.',
    remedy:
      'The visitor: try again after `Retry-After`. If it does not go away, the database is slow or away: look at the log of the server.',
  }),
  MODULE_UNAVAILABLE: error(503, 722, {
    text: 'A module of this route cannot be applied, so nothing passes.',
    when: 'An enabled module cannot be compiled, or its secrets cannot be decrypted with the key of the server.',
    remedy: 'The log names the module and the reason. Set the module again, or delete it if it is not needed.',
  }),
  UPSTREAM_UNREACHABLE: error(502, 8012, {
    text: 'The service behind this address cannot be reached.',
    when: 'The service refuses connections, or closed one before it answered.',
    remedy: 'Start the service, and check that it listens at the address that the backend or the agent forwards to.',
  }),
  UPSTREAM_INVALID: error(502, 3004, {
    text: 'The service behind this address did not answer with valid HTTP.',
    when: 'The answer of the service is not HTTP, or its headers are larger than 64 KiB.',
    remedy: 'Check the port of the service, and whether it expects TLS: then put `https://` before its address.',
  }),
  UPSTREAM_TIMEOUT: error(504, 3005, {
    text: 'The service behind this address did not answer in time.',
    when: 'The service did not accept a connection within ten seconds, or was silent for five minutes before it answered.',
    remedy: 'Find out why the service is slow. For long work, answer early or send some bytes now and then.',
  }),
  CLIENT_CERTIFICATE_REQUIRED: error(403, 3002, {
    text: 'A valid client certificate is needed here.',
    when: 'The certificate of a visitor is missing or expired. Only the access log shows this code: TLS ends with an alert.',
    remedy: 'The visitor: use a certificate that an authority of the module `mutual_tls` has issued.',
  }),
  IP_REFUSED: error(403, 3203, {
    text: 'Your IP address is not allowed here.',
    when: 'The policies of `ip_restriction` do not allow the address of the visitor, or deny it.',
    remedy:
      'Add a rule for the address. Behind a load balancer set `--trusted-proxies`; otherwise its own address is checked.',
  }),
  USER_AGENT_REFUSED: error(403, 3211, {
    text: 'Your browser or program is not allowed here.',
    when: 'A `deny` pattern of the module `user_agent_filter` matches the `User-Agent` of the visitor, and no `allow` pattern does.',
    remedy: 'Change the patterns of the module.',
  }),
  WEBHOOK_REFUSED: error(403, 3204, {
    text: 'The signature of this webhook is missing or wrong.',
    when: 'The module `webhook_verification` finds no signature, one made with another secret, or one that is too old.',
    remedy: 'Compare `provider` and `secret` with the settings of the sender; check the clock of the server.',
  }),
  BODY_TOO_LARGE_TO_CHECK: error(413, 3204, {
    text: 'The body is too large for its signature to be checked.',
    when: 'The body of a webhook is larger than 10 MiB, or a form of Twilio or SAML larger than 256 KiB.',
    remedy: 'Make the sender send less, or serve this path by a route without the module.',
  }),
  BODY_MEMORY_FULL: error(503, 3204, {
    text: 'There is no memory to check the body of this request at the moment; try again.',
    when: 'A module has to read the body, and the memory for that, or the share of this edge or visitor, is in use.',
    remedy: 'The sender: try again after `Retry-After`. The operator: raise `--body-memory` if this happens often.',
  }),
  CREDENTIALS_REQUIRED: error(401, 3401, {
    text: 'Log in to see this.',
    when: 'The endpoint has basic auth, and the user name or password is missing or wrong.',
    remedy: 'The visitor: log in with the user name and password that the agent was given as `basic_auth`.',
  }),
  LOGIN_STATE_MISSING: error(400, 3120, {
    text: 'This address completes a login, but no login led to it. Open the page that you want instead.',
    when: 'The callback of a login was opened without a `state`, or with several.',
    remedy: 'The visitor: open the wanted page, not the callback. Check that the provider returns `state`.',
  }),
  LOGIN_STATE_INVALID: error(400, 3108, {
    text: 'This login did not begin here. Open the page again to log in.',
    when: 'The `state` at the callback was changed, was made for another edge or route, or under another key of the server.',
    remedy:
      'The visitor: open the page again. If it happens every time, check that the redirect URI leads to this edge.',
  }),
  LOGIN_STATE_EXPIRED: error(400, 3119, {
    text: 'This login took too long. Open the page again to log in.',
    when: 'More than 15 minutes passed between the beginning and the end of a login.',
    remedy: 'The visitor: open the page again. If it happens at once, set the clock of the server.',
  }),
  LOGIN_WRONG_HOST: error(400, 3124, {
    text: 'This login began at another name. Open the page again to log in.',
    when: 'A login began at one name of the edge and came back to another.',
    remedy: 'Register `https://<name>/oauth2/callback` at the provider for every name of the edge.',
  }),
  LOGIN_OTHER_BROWSER: error(400, 3121, {
    text: 'This login did not begin in this browser, or its cookie is gone. Open the page again to log in.',
    when: 'The cookie that ties a login to its browser is missing or belongs to another login, or a callback was reloaded.',
    remedy: 'The visitor: allow cookies for this name, and open the page again.',
  }),
  LOGIN_CODE_REFUSED: error(400, 3123, {
    text: 'The provider refused the code of this login, or it was used before. Open the page again to log in.',
    when: 'The provider answered `invalid_grant`: the code was used before, is too old, or is for another redirect URI.',
    remedy: 'The visitor: open the page again. If it happens every time, check the redirect URI at the provider.',
  }),
  LOGIN_DENIED: error(403, 5211, {
    text: 'The login was cancelled, or the provider denied it.',
    when: 'The provider sent the visitor back with `access_denied`.',
    remedy: 'The visitor: try again and agree. Check at the provider who may use the application.',
  }),
  LOGIN_NOT_ALLOWED: error(403, 3105, {
    text: 'You are logged in, but you are not allowed in here.',
    when: 'No list of the module `oauth`, or of the agent, has an email address of the user that the provider has verified.',
    remedy: 'Add the user to a list. The visitor: `/postern/login` logs in as somebody else.',
  }),
  LOGIN_TOKEN_REFUSED: error(403, 5204, {
    text: 'What the provider says about this login cannot be trusted.',
    when: 'The ID token is not signed by a key of the provider, or is for another client, another login or another time.',
    remedy:
      'The log names the reason. Compare `issuer` and `client_id` with the settings of the provider; set the clock.',
  }),
  LOGIN_CLAIMS_REFUSED: error(403, 5205, {
    text: 'The provider does not say who logged in.',
    when: 'The provider sent no usable id of the user.',
    remedy: 'Check what the provider tells this application about its users.',
  }),
  LOGIN_PROVIDER_ERROR: error(502, 5211, {
    text: 'The provider answered the login with an error.',
    when: 'The provider sent the visitor back with an error other than `access_denied`.',
    remedy: 'The log names the error. Often a scope or the redirect URI is not registered at the provider.',
  }),
  LOGIN_PROVIDER_DOWN: error(502, 5208, {
    text: 'The provider of the login does not answer; try again later.',
    when: 'The discovery document of the provider cannot be read, or the provider does not answer whether a user is still allowed in.',
    remedy: 'The log names the reason. For a provider on a private network set `--outbound-allow`.',
  }),
  LOGIN_EXCHANGE_FAILED: error(502, 5202, {
    text: 'The provider did not complete the login; try again later.',
    when: 'The provider did not exchange the code of a login, or did not say who the user is.',
    remedy: 'The log names the reason; `invalid_client` means that `client_id` or `client_secret` is wrong.',
  }),
  LOGIN_NO_ID_TOKEN: error(502, 5203, {
    text: 'The provider completed the login without an ID token.',
    when: 'The token endpoint of the provider answered without `id_token`.',
    remedy: 'Check that the provider speaks OpenID Connect, not only OAuth.',
  }),
  LOGIN_STORE_DOWN: error(503, 3100, {
    text: 'Logins do not work at the moment; open the page again shortly.',
    when: 'The database does not answer, or too many logins are looked up at once. Visitors whose login is in memory are not affected.',
    remedy: 'The visitor: try again after `Retry-After`. The operator: find out why the database does not answer.',
  }),
  LOGIN_ANSWER_UNREADABLE: error(400, 5301, {
    text: 'The answer of the identity provider cannot be read.',
    when: 'The identity provider of a `saml` module posted something that is not a valid SAML response: not base64, not XML, with a DTD or comments, or larger than 256 KiB.',
    remedy: 'The log names the reason. Check that the identity provider answers with the HTTP-POST binding.',
  }),
  LOGIN_ANSWER_ENCRYPTED: error(400, 5301, {
    text: 'The answer of the identity provider is encrypted, which is not supported; TLS protects it already.',
    when: 'The identity provider encrypts its assertions.',
    remedy: 'Turn the encryption of assertions off at the identity provider.',
  }),
  LOGIN_ANSWER_UNSIGNED: error(403, 5305, {
    text: 'The answer of the identity provider is not signed by it, or was changed on the way.',
    when: 'No signature by a key in the metadata of the identity provider covers the assertion: it is unsigned, changed, rearranged, signed by another key, or signed with SHA-1.',
    remedy:
      'The log names the reason. Make the identity provider sign with RSA and SHA-256, and update `idp_metadata` if its certificate changed.',
  }),
  LOGIN_ANSWER_ELSEWHERE: error(403, 5305, {
    text: 'The answer of the identity provider is for another address or another login. Open the page again to log in.',
    when: 'The issuer, audience, recipient or request of an assertion is not that of this login.',
    remedy:
      'The log names which. Compare `entity_id` and `assertion_consumer_service_url` of the module with the settings of the identity provider.',
  }),
  LOGIN_ANSWER_OUTDATED: error(403, 5313, {
    text: 'The answer of the identity provider is not valid at this time. Open the page again to log in.',
    when: 'An assertion has expired or is not valid yet; a minute of difference between the clocks is tolerated.',
    remedy: 'Set the clocks of the server and of the identity provider.',
  }),
  LOGIN_ANSWER_REPEATED: error(403, 5305, {
    text: 'The answer of the identity provider was used before. Open the page again to log in.',
    when: 'An assertion came a second time, as when a visitor reloads the page that posted it.',
    remedy: 'Open the page again.',
  }),
  LOGIN_ANSWER_AMBIGUOUS: error(403, 5311, {
    text: 'The answer of the identity provider does not name exactly one user.',
    when: 'An assertion does not have exactly one subject with one name, and one authentication statement.',
    remedy: 'Check how the identity provider makes its assertions.',
  }),
  LOGIN_TARGET_REFUSED: error(400, 5317, {
    text: 'This login began at the identity provider, whose relay state names no page of this address.',
    when: 'A login that began at the identity provider has no relay state, or one that is neither a path nor a URL with the name it was posted to.',
    remedy: 'Set the relay state (also called target or start URL) of the application at the identity provider.',
  }),
  CIRCUIT_OPEN: error(503, 3202, {
    text: 'The service behind this address failed too often; try again later.',
    when: 'The service failed as often as the module `circuit_breaker` allows; the header `Retry-After` says how long it rests.',
    remedy: 'Repair the service; requests pass again once one of them succeeds.',
  }),
  RATE_LIMITED: error(429, 715, {
    text: 'Too many requests; try again later.',
    when: 'More requests came than a `rate-limit` rule of the policy allows; the header `Retry-After` says how long to wait.',
    remedy:
      'The visitor: wait. Otherwise raise `capacity` of the rule, or choose a `bucket_key` that tells visitors apart.',
  }),
  TOKEN_REQUIRED: error(401, 3401, {
    text: 'A valid token is needed here.',
    when: 'A `jwt-validation` rule of the policy requires a token, and that of the request is missing or not valid.',
    remedy: 'The visitor: get a new token. At level `debug` the log says what is wrong with the one that was sent.',
  }),
  KEYS_UNAVAILABLE: error(502, 3422, {
    text: 'The keys for checking tokens cannot be fetched.',
    when: 'A `jwt-validation` rule of the policy cannot get the keys that it needs.',
    remedy: 'Check that the server can reach the URLs in `additional_jkus`; the log names the reason.',
  }),
  HEAD_TOO_LARGE_TO_CHECK: error(431, 3001, {
    text: 'This request has more query parameters or cookies than can be checked.',
    when: 'A rule of the policy reads query parameters or cookies, and there are more than 100 parameters or 200 cookies, or a type of content with more than 100 parameters. Where no rule reads them, any number passes.',
    remedy:
      'The visitor: delete the cookies of this site, or send fewer parameters, for example in the body. The operator: let the rule read `req.url.query` or the header `cookie` as text.',
  }),
  ANSWER_TOO_LARGE_TO_CHECK: error(502, 3004, {
    text: 'There are more headers or parameters around this answer than can be checked.',
    when: 'As `ERR_HEAD_TOO_LARGE_TO_CHECK`, in a rule for responses: it reads the cookies that the service sets, over 200 or one with over 20 attributes, or those of the request.',
    remedy: 'Make the service set fewer cookies, or let the rule read less.',
  }),
  POLICY_BUDGET_SPENT: error(503, 2300, {
    text: 'The rules of this address have more to do for this request than they may, so nothing passes.',
    when: 'The rules of the policy spent the meter of a request: expressions, texts and URLs that they write, bodies that they hash, counters and calls of other servers. A connection is closed.',
    remedy:
      'The log names the rule; `POST /policy/explain` shows what a request costs. Simplify the rules; the same request is refused again.',
  }),
  POLICY_ANSWER_BUDGET_SPENT: error(502, 2300, {
    text: 'The rules of this address have more to do for this answer than they may, so it is not shown.',
    when: 'The rules for responses spent the meter of the request. The service has done its work already, so think before you send the request again.',
    remedy: 'The log names the rule; `POST /policy/explain` shows what a request costs. Simplify the rules.',
  }),
  POLICY_FAILED: error(500, 2300, {
    text: 'A rule of this route failed, so nothing passes.',
    when: 'An action of the policy failed, or a condition failed in a rule that identifies visitors or depends on such a rule.',
    remedy: 'The log names the rule and the reason. Correct or simplify the rule.',
  }),
  POLICY_REQUEST_FAILED: error(502, 3602, {
    text: 'A service that a rule of this route depends on did not answer, so nothing passes.',
    when: 'An `http-request` rule of the policy with `on_error: halt` got no answer in time, or one that is too long.',
    remedy: 'The log names the host and the reason. Requests to addresses that are not public need `--outbound-allow`.',
  }),
  POLICY_REQUEST_LOOP: error(508, 3603, {
    text: 'The rules of this address call each other in a loop.',
    when: 'The request comes from an `http-request` rule that was itself triggered by such a rule, and so on, three times over; its `CDN-Loop` header says so.',
    remedy: 'Make no `http-request` rule call an address whose policy leads back to it.',
  }),
  CONNECTION_DENIED: error(403, 3203, {
    text: 'A rule of this address closed the connection.',
    when: 'A rule of the policy of a TCP or TLS edge has `deny` or `close-connection`.',
    remedy: 'If this is not intended, find the rule that applies and change it.',
  }),
  WEBSOCKET_REQUIRED: error(400, 3206, {
    text: 'This address accepts WebSocket connections only.',
    when: 'The route has the module `websocket_tcp_converter`, and the request does not open a WebSocket.',
    remedy: 'The visitor: connect with a WebSocket client.',
  }),
  BROKEN_MODULE: error(500, 722, {
    text: 'A module of this route failed.',
    when: 'A module, or the server itself, failed during this request; nothing was forwarded.',
    remedy: 'The log has a line with the cause. This is a defect of the server: please report it.',
  }),
} as const

function error(status: number, ngrok: number, texts: Omit<VisitorError, 'status' | 'ngrok'>): VisitorError {
  return { status, ngrok, ...texts }
}

export type VisitorErrorCode = keyof typeof table

export const visitorErrors: Readonly<Record<VisitorErrorCode, VisitorError>> = table
