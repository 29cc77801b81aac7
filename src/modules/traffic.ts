/** The registry of what modules do to traffic, in the order of execution. */
import { basicAuthTraffic } from './basic_auth/traffic.ts'
import { circuitBreakerTraffic } from './circuit_breaker/traffic.ts'
import { compressionTraffic } from './compression/traffic.ts'
import { ipRestrictionTraffic } from './ip_restriction/traffic.ts'
import type { ModuleTraffic } from './module-traffic.ts'
import { mutualTlsTraffic } from './mutual_tls/traffic.ts'
import { oauthTraffic } from './oauth/traffic.ts'
import { oidcTraffic } from './oidc/traffic.ts'
import { policyTraffic } from './policy/traffic.ts'
import { requestHeadersTraffic } from './request_headers/traffic.ts'
import { responseHeadersTraffic } from './response_headers/traffic.ts'
import { samlTraffic } from './saml/traffic.ts'
import { tlsTerminationTraffic } from './tls_termination/traffic.ts'
import { userAgentFilterTraffic } from './user_agent_filter/traffic.ts'
import { webhookVerificationTraffic } from './webhook_verification/traffic.ts'
import { websocketTcpConverterTraffic } from './websocket_tcp_converter/traffic.ts'

/**
 * The order within one phase: connections and requests run down this list, responses come back up it. A phase
 * that comes earlier runs earlier whatever this list says: on TCP and TLS edges `ip_restriction` judges the connection
 * before any handshake. `backend` comes after all of them and has nothing to compile: the edge turns its plan into targets.
 */
export const modulesInOrder: readonly ModuleTraffic[] = [
  tlsTerminationTraffic, // first: all that follows may need what TLS protects
  mutualTlsTraffic, // part of the same handshake: no request exists before it
  responseHeadersTraffic, // last change before the visitor: no other module sees it, and it applies to answers of all
  compressionTraffic, // on the way back after policy, whose rules see the response as the upstream sent it
  ipRestrictionTraffic, // cheapest verdict, and it keeps strangers away from the login
  userAgentFilterTraffic, // still cheap, and a refused program should not be sent to log in
  webhookVerificationTraffic, // needs the body, so after what needs less; before logins, as webhooks cannot log in
  basicAuthTraffic, // the login that needs no redirect; only endpoints of agents have it
  oauthTraffic, // before policy, so that no rule acts for an unknown visitor
  oidcTraffic, // as oauth: a route has at most one of the three enabled
  samlTraffic, // as oauth
  websocketTcpConverterTraffic, // after all guards: only visitors who may come in learn that it refuses plain requests
  policyTraffic, // sees the request as the visitor sent it
  circuitBreakerTraffic, // innermost verdict: counts what goes upstream and comes back, not answers of others
  requestHeadersTraffic, // last change before upstream: no other module sees it
]
