/** Every error of the API: its code, status, default sentence, and number in the ngrok dialect. */

interface ErrorEntry {
  readonly status: number
  /** The vendor's number for the same error or the nearest one; several of ours may share a number. */
  readonly ngrok: number
  readonly text: string
}

const table = {
  UNAUTHENTICATED: { status: 401, ngrok: 203, text: 'Send a valid API key: `Authorization: Bearer <token>`.' },
  FORBIDDEN: { status: 403, ngrok: 635, text: 'The owner of this key is not an admin, and only an admin may do this.' },
  OWNER_NOT_ALLOWED: { status: 403, ngrok: 630, text: 'Only an admin may name an owner other than themselves.' },
  IP_NOT_ALLOWED: { status: 403, ngrok: 220, text: 'An IP restriction of this server does not let your address in.' },
  PAGE_NOT_HERE: {
    status: 403,
    ngrok: 635,
    text: 'Sign in on the page of this server, opened at `localhost`, an IP address or the name in `--api-url`.',
  },
  VERSION_MISSING: { status: 400, ngrok: 218, text: 'Send the header `Service-Version: 2`.' },
  VERSION_UNSUPPORTED: { status: 400, ngrok: 217, text: 'The only supported API version is `2`.' },
  RATE_LIMITED: { status: 429, ngrok: 226, text: 'Too many requests with your keys; wait as `Retry-After` says.' },

  NOT_FOUND: { status: 404, ngrok: 222, text: 'There is no such resource.' },
  ROUTE_NOT_FOUND: { status: 404, ngrok: 209, text: 'There is no such address in this API.' },
  MODULE_NOT_SET: { status: 404, ngrok: 222, text: 'This module is not set.' },
  METHOD_NOT_ALLOWED: { status: 405, ngrok: 209, text: 'That method is not allowed at this address; see `Allow`.' },

  BAD_REQUEST: { status: 400, ngrok: 212, text: 'The request is not well-formed HTTP.' },
  HEADERS_TOO_LARGE: { status: 431, ngrok: 812, text: 'The request line and headers are too large.' },
  REQUEST_TIMEOUT: { status: 408, ngrok: 212, text: 'The request did not arrive in time.' },
  BODY_TYPE: { status: 415, ngrok: 210, text: 'Send the body as `Content-Type: application/json`.' },
  BODY_TOO_LARGE: { status: 413, ngrok: 812, text: 'The body is over 1 MiB.' },
  BODY_MALFORMED: { status: 400, ngrok: 213, text: 'The body is not valid JSON.' },
  UNKNOWN_FIELD: { status: 400, ngrok: 214, text: 'The body has a field that is not known here.' },
  INVALID_VALUE: { status: 400, ngrok: 215, text: 'A field has a value that is not allowed.' },
  FIELD_REQUIRED: { status: 400, ngrok: 215, text: 'A required field is missing.' },
  FIELD_TOO_LONG: { status: 400, ngrok: 215, text: 'A field is longer than allowed.' },
  UNKNOWN_QUERY: { status: 400, ngrok: 231, text: 'The query has a parameter that is not known here.' },
  REPEATED_QUERY: { status: 400, ngrok: 232, text: 'A query parameter is given more than once.' },
  BAD_LIMIT: { status: 400, ngrok: 233, text: '`limit` must be a whole number between 1 and 100.' },
  BAD_CURSOR: { status: 400, ngrok: 223, text: '`before_id` must be an id of the listed kind.' },

  UNKNOWN_REFERENCE: { status: 400, ngrok: 223, text: 'The body names a resource that does not exist.' },
  STILL_REFERENCED: { status: 409, ngrok: 6502, text: 'Other resources still refer to this one.' },
  CONFLICT: { status: 409, ngrok: 245, text: 'Somebody changed the same thing at the same time; try again.' },
  UNKNOWN_OWNER: { status: 400, ngrok: 634, text: 'No user or bot has that id.' },
  BAD_ACL_RULE: { status: 400, ngrok: 600, text: 'An ACL rule is `*` or `bind:` and a domain, an address or a label.' },
  BAD_PUBLIC_KEY: { status: 400, ngrok: 612, text: 'The public key cannot be read.' },
  PUBLIC_KEY_IN_USE: { status: 409, ngrok: 609, text: 'That public key is already on another credential.' },
  LAST_ADMIN: {
    status: 409,
    ngrok: 245,
    text: 'This is the last active admin; make another user an admin before you delete, deactivate or demote this one.',
  },
  CAPTURE_RUNS: { status: 409, ngrok: 245, text: 'This edge is captured already.' },
  NOT_REPLAYABLE: { status: 409, ngrok: 245, text: 'This exchange cannot be repeated as it was.' },
  NAME_IN_USE: { status: 409, ngrok: 4112, text: 'That name is taken.' },

  BAD_HOSTPORT: { status: 400, ngrok: 7104, text: 'A hostport is `host:port`.' },
  BAD_HOSTPORT_PORT: { status: 400, ngrok: 7116, text: 'No listener of this server has that port.' },
  HOSTPORT_SERVED_BY_AGENT: { status: 409, ngrok: 7132, text: 'An agent serves that hostport at the moment.' },
  HOSTPORT_IN_USE: { status: 409, ngrok: 7122, text: 'That hostport belongs to another edge, or to an agent ingress.' },
  MODULE_NEEDS_TERMINATION: {
    status: 400,
    ngrok: 7062,
    text: 'With `terminate_at` `upstream` the edge does not see the traffic that this module needs.',
  },
  MIN_VERSION_NOT_ALLOWED: { status: 400, ngrok: 7032, text: '`min_version` must be null when TLS ends upstream.' },
  SEVERAL_LOGINS: {
    status: 400,
    ngrok: 7079,
    text: 'Only one of `oauth`, `oidc` and `saml` may be enabled on a route.',
  },
  PROVIDER_MISSING: { status: 400, ngrok: 7037, text: 'An enabled `oauth` module names one provider.' },
  SEVERAL_PROVIDERS: { status: 400, ngrok: 7036, text: 'An `oauth` module names one provider, not several.' },
  ROUTE_MATCH_IN_USE: { status: 409, ngrok: 7126, text: 'Another route of this edge has the same `match`.' },
  BAD_ADDRESS: { status: 400, ngrok: 6505, text: 'An address of a static backend is `host:port`.' },
  BACKEND_IN_ITSELF: { status: 400, ngrok: 6524, text: 'A backend cannot contain itself, not even through others.' },
  BACKENDS_TOO_DEEP: { status: 400, ngrok: 6513, text: 'Backends are nested too deeply.' },
  BACKEND_NEEDS_HTTP: { status: 400, ngrok: 7021, text: 'An HTTP response backend cannot serve a TCP or TLS edge.' },
  BAD_DOMAIN: { status: 400, ngrok: 407, text: 'A domain is a name such as `app.example.com`.' },
  NAME_NOT_PROVEN: { status: 403, ngrok: 320, text: 'No record in the DNS proves that this name is yours.' },
  DOMAIN_IN_USE: { status: 409, ngrok: 413, text: 'That domain is reserved already, or has another use.' },
  CERTIFICATE_OR_POLICY: {
    status: 400,
    ngrok: 434,
    text: 'A domain has either a `certificate_id` or a `certificate_management_policy`; clear one before setting the other.',
  },
  CERTIFICATE_NOT_RENEWABLE: {
    status: 409,
    ngrok: 245,
    text: 'This server cannot order another in the place of that certificate.',
  },
  NO_FREE_PORT: { status: 409, ngrok: 503, text: 'No TCP port is free.' },
  RESTRICTION_IN_USE: { status: 409, ngrok: 1802, text: 'There is already an IP restriction of that type.' },
  BAD_CIDR: { status: 400, ngrok: 1406, text: '`cidr` must be a network in CIDR form.' },
  RULE_IN_USE: { status: 409, ngrok: 1408, text: 'This IP policy already has a rule for that network.' },
  BAD_CERTIFICATE: { status: 400, ngrok: 1920, text: '`ca_pem` must be one or more CA certificates in PEM form.' },
  BAD_TLS_CERTIFICATE: { status: 400, ngrok: 1920, text: '`certificate_pem` must be a certificate in PEM form.' },
  BAD_CERTIFICATE_CHAIN: {
    status: 400,
    ngrok: 1926,
    text: '`certificate_pem` must be the certificate first, then each issuer of the one before.',
  },
  BAD_PRIVATE_KEY: { status: 400, ngrok: 1903, text: 'The private key cannot be read, or its type is not supported.' },
  PRIVATE_KEY_MISMATCH: { status: 400, ngrok: 1923, text: 'The private key does not belong to the certificate.' },
  KEY_SIZE_NOT_ALLOWED: { status: 400, ngrok: 1940, text: '`key_size` is for RSA keys only.' },
  CURVE_NOT_ALLOWED: { status: 400, ngrok: 1942, text: '`elliptic_curve` is for ECDSA keys only.' },
  BAD_VALIDITY: { status: 400, ngrok: 1962, text: '`valid_until` must be later than `valid_after`.' },
  BAD_REGEX: { status: 400, ngrok: 2090, text: 'A pattern is not a valid RE2 regular expression.' },
  TOO_COSTLY: { status: 400, ngrok: 215, text: 'Checking a field takes too long; make it smaller or simpler.' },
  CHECKS_BUSY: {
    status: 429,
    ngrok: 226,
    text: 'Too many documents of this caller are still being checked; wait as `Retry-After` says.',
  },
  BAD_POLICY: { status: 400, ngrok: 2201, text: 'The traffic policy is not valid.' },

  COMMAND_UNSUPPORTED: { status: 400, ngrok: 806, text: 'The agent of this session does not support that command.' },
  SSH_COMMAND_UNSUPPORTED: { status: 400, ngrok: 1121, text: 'A session that came by SSH can only be stopped.' },
  COMMAND_REFUSED: { status: 409, ngrok: 809, text: 'The agent refused the command.' },
  COMMAND_PENDING: { status: 409, ngrok: 810, text: 'Another command to this session is still under way; try again.' },
  COMMAND_FAILED: { status: 502, ngrok: 807, text: 'The agent could not carry out the command.' },
  COMMAND_TIMEOUT: { status: 504, ngrok: 810, text: 'The agent did not answer in time.' },

  STARTING_OR_STOPPING: { status: 503, ngrok: 803, text: 'The server is starting or stopping; try again shortly.' },
  SERVER_BUSY: {
    status: 503,
    ngrok: 1501,
    text: 'This server has reached a limit that its operator set; try again shortly.',
  },
  STORE_UNAVAILABLE: { status: 503, ngrok: 1501, text: 'The database does not answer; try again shortly.' },
  KEY_ROTATED: {
    status: 503,
    ngrok: 1501,
    text: 'The key of the database was rotated while this server ran; its operator has to restart it.',
  },
  SECRET_UNREADABLE: {
    status: 500,
    ngrok: 722,
    text: 'A stored secret cannot be opened: it was changed or moved in the database itself.',
  },
  INTERNAL: { status: 500, ngrok: 722, text: 'The server failed; look for the operation id in its log.' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof table

/** The whole table, for documentation and translation. */
export const errors: Readonly<Record<ErrorCode, ErrorEntry>> = table

interface RefusalOptions {
  readonly headers?: Record<string, string>
  readonly field?: string
  readonly reason?: string
  readonly cause?: unknown
}

/** A request that the API turns down: the caller did something that is not allowed, or the server cannot serve it now. */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly status: number
  /** Headers of the answer, such as `Allow`. */
  readonly headers: Readonly<Record<string, string>>
  /** Path of the field it is about; `''` when there is none, or only the message names it. */
  readonly field: string
  /** Distinguishes refusals with the same code in one word, for dialects with finer codes; `''` when none needs it. */
  readonly reason: string

  constructor(code: ErrorCode, msg?: string, options: RefusalOptions = {}) {
    super(msg ?? errors[code].text, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'Refusal'
    this.code = code
    this.status = errors[code].status
    this.headers = options.headers ?? {}
    this.field = options.field ?? ''
    this.reason = options.reason ?? ''
  }
}
