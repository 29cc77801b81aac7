/** Every error that a visitor can see: its code, status, sentence, and the vendor's number for it. */

interface VisitorError {
  readonly status: number
  readonly ngrok: number
  readonly text: string
}

const table = {
  BAD_VISITOR_REQUEST: { status: 400, ngrok: 3001, text: 'The request is not well-formed HTTP.' },
  AMBIGUOUS_PATH: {
    status: 400,
    ngrok: 3001,
    text: 'The path of this address can be read in different ways. Write it without `..`, `//`, `\\`, `;` and needless `%` escapes.',
  },
  REQUEST_HEAD_TIMEOUT: { status: 408, ngrok: 3001, text: 'The request line and headers did not arrive in time.' },
  REQUEST_BODY_TIMEOUT: { status: 408, ngrok: 3001, text: 'The body of the request did not arrive in time.' },
  REQUEST_HEAD_TOO_LARGE: { status: 431, ngrok: 3001, text: 'The request line and headers are too large.' },
  HTTP_VERSION_UNSUPPORTED: { status: 505, ngrok: 3001, text: 'Only HTTP/1.1 and HTTP/2 are supported here.' },
  EXPECTATION_FAILED: { status: 417, ngrok: 3001, text: 'The only supported expectation is `100-continue`.' },
  MISDIRECTED: { status: 421, ngrok: 3200, text: 'This name is served by another connection; open a new one for it.' },
  ENDPOINT_OFFLINE: { status: 404, ngrok: 3200, text: 'Nothing is online at this address.' },
  NO_ROUTE: { status: 404, ngrok: 3209, text: 'No route of this edge matches the path.' },
  NO_BACKEND: { status: 503, ngrok: 724, text: 'This route has no backend.' },
  BACKEND_OFFLINE: { status: 503, ngrok: 6528, text: 'No agent that could serve this is online.' },
  BACKEND_BUSY: { status: 503, ngrok: 743, text: 'The agent accepts no more connections at the moment; try again.' },
  SERVER_BUSY: {
    status: 503,
    ngrok: 743,
    text: 'This server has reached a limit that its operator set; try again shortly.',
  },
  NODE_UNREACHABLE: {
    status: 503,
    ngrok: 722,
    text: 'The part of the server that has this tunnel cannot be reached; try again shortly.',
  },
  EDGE_STARTING: { status: 503, ngrok: 722, text: 'This address is about to be served; try again in a moment.' },
  MODULE_UNAVAILABLE: { status: 503, ngrok: 722, text: 'A module of this route cannot be applied, so nothing passes.' },
  UPSTREAM_UNREACHABLE: { status: 502, ngrok: 8012, text: 'The service behind this address cannot be reached.' },
  UPSTREAM_INVALID: {
    status: 502,
    ngrok: 3004,
    text: 'The service behind this address did not answer with valid HTTP.',
  },
  UPSTREAM_TIMEOUT: { status: 504, ngrok: 3005, text: 'The service behind this address did not answer in time.' },
  CLIENT_CERTIFICATE_REQUIRED: { status: 403, ngrok: 3002, text: 'A valid client certificate is needed here.' },
  IP_REFUSED: { status: 403, ngrok: 3203, text: 'Your IP address is not allowed here.' },
  USER_AGENT_REFUSED: { status: 403, ngrok: 3211, text: 'Your browser or program is not allowed here.' },
  WEBHOOK_REFUSED: { status: 403, ngrok: 3204, text: 'The signature of this webhook is missing or wrong.' },
  BODY_TOO_LARGE_TO_CHECK: { status: 413, ngrok: 3204, text: 'The body is too large for its signature to be checked.' },
  BODY_MEMORY_FULL: {
    status: 503,
    ngrok: 3204,
    text: 'There is no memory to check the body of this request at the moment; try again.',
  },
  CREDENTIALS_REQUIRED: { status: 401, ngrok: 3401, text: 'Log in to see this.' },
  LOGIN_STATE_MISSING: {
    status: 400,
    ngrok: 3120,
    text: 'This address completes a login, but no login led to it. Open the page that you want instead.',
  },
  LOGIN_STATE_INVALID: {
    status: 400,
    ngrok: 3108,
    text: 'This login did not begin here. Open the page again to log in.',
  },
  LOGIN_STATE_EXPIRED: { status: 400, ngrok: 3119, text: 'This login took too long. Open the page again to log in.' },
  LOGIN_WRONG_HOST: {
    status: 400,
    ngrok: 3124,
    text: 'This login began at another name. Open the page again to log in.',
  },
  LOGIN_OTHER_BROWSER: {
    status: 400,
    ngrok: 3121,
    text: 'This login did not begin in this browser, or its cookie is gone. Open the page again to log in.',
  },
  LOGIN_CODE_REFUSED: {
    status: 400,
    ngrok: 3123,
    text: 'The provider refused the code of this login, or it was used before. Open the page again to log in.',
  },
  LOGIN_DENIED: { status: 403, ngrok: 5211, text: 'The login was cancelled, or the provider denied it.' },
  LOGIN_NOT_ALLOWED: { status: 403, ngrok: 3105, text: 'You are logged in, but you are not allowed in here.' },
  LOGIN_TOKEN_REFUSED: { status: 403, ngrok: 5204, text: 'What the provider says about this login cannot be trusted.' },
  LOGIN_CLAIMS_REFUSED: { status: 403, ngrok: 5205, text: 'The provider does not say who logged in.' },
  LOGIN_PROVIDER_ERROR: { status: 502, ngrok: 5211, text: 'The provider answered the login with an error.' },
  LOGIN_PROVIDER_DOWN: {
    status: 502,
    ngrok: 5208,
    text: 'The provider of the login does not answer; try again later.',
  },
  LOGIN_EXCHANGE_FAILED: {
    status: 502,
    ngrok: 5202,
    text: 'The provider did not complete the login; try again later.',
  },
  LOGIN_NO_ID_TOKEN: { status: 502, ngrok: 5203, text: 'The provider completed the login without an ID token.' },
  LOGIN_STORE_DOWN: {
    status: 503,
    ngrok: 3100,
    text: 'Logins do not work at the moment; open the page again shortly.',
  },
  LOGIN_ANSWER_UNREADABLE: { status: 400, ngrok: 5301, text: 'The answer of the identity provider cannot be read.' },
  LOGIN_ANSWER_ENCRYPTED: {
    status: 400,
    ngrok: 5301,
    text: 'The answer of the identity provider is encrypted, which is not supported; TLS protects it already.',
  },
  LOGIN_ANSWER_UNSIGNED: {
    status: 403,
    ngrok: 5305,
    text: 'The answer of the identity provider is not signed by it, or was changed on the way.',
  },
  LOGIN_ANSWER_ELSEWHERE: {
    status: 403,
    ngrok: 5305,
    text: 'The answer of the identity provider is for another address or another login. Open the page again to log in.',
  },
  LOGIN_ANSWER_OUTDATED: {
    status: 403,
    ngrok: 5313,
    text: 'The answer of the identity provider is not valid at this time. Open the page again to log in.',
  },
  LOGIN_ANSWER_REPEATED: {
    status: 403,
    ngrok: 5305,
    text: 'The answer of the identity provider was used before. Open the page again to log in.',
  },
  LOGIN_ANSWER_AMBIGUOUS: {
    status: 403,
    ngrok: 5311,
    text: 'The answer of the identity provider does not name exactly one user.',
  },
  LOGIN_TARGET_REFUSED: {
    status: 400,
    ngrok: 5317,
    text: 'This login began at the identity provider, whose relay state names no page of this address.',
  },
  CIRCUIT_OPEN: {
    status: 503,
    ngrok: 3202,
    text: 'The service behind this address failed too often; try again later.',
  },
  RATE_LIMITED: { status: 429, ngrok: 715, text: 'Too many requests; try again later.' },
  TOKEN_REQUIRED: { status: 401, ngrok: 3401, text: 'A valid token is needed here.' },
  KEYS_UNAVAILABLE: { status: 502, ngrok: 3422, text: 'The keys for checking tokens cannot be fetched.' },
  POLICY_FAILED: { status: 500, ngrok: 2300, text: 'A rule of this route failed, so nothing passes.' },
  POLICY_REQUEST_FAILED: {
    status: 502,
    ngrok: 3602,
    text: 'A service that a rule of this route depends on did not answer, so nothing passes.',
  },
  POLICY_REQUEST_LOOP: { status: 508, ngrok: 3603, text: 'The rules of this address call each other in a loop.' },
  CONNECTION_DENIED: { status: 403, ngrok: 3203, text: 'A rule of this address closed the connection.' },
  WEBSOCKET_REQUIRED: { status: 400, ngrok: 3206, text: 'This address accepts WebSocket connections only.' },
  BROKEN_MODULE: { status: 500, ngrok: 722, text: 'A module of this route failed.' },
} as const satisfies Readonly<Record<string, VisitorError>>

export type VisitorErrorCode = keyof typeof table

export const visitorErrors: Readonly<Record<VisitorErrorCode, VisitorError>> = table
