/** The registry of what modules do to traffic, in the order of execution. */
import { compileBasicAuth } from './basic_auth/traffic.ts'
import { compileCircuitBreaker } from './circuit_breaker/traffic.ts'
import { compileCompression } from './compression/traffic.ts'
import { compileIpRestriction } from './ip_restriction/traffic.ts'
import { compileMutualTls } from './mutual_tls/traffic.ts'
import { compileOAuth } from './oauth/traffic.ts'
import { loadLibrariesAhead } from './oidc/libraries.ts'
import { compileOidc } from './oidc/traffic.ts'
import type { Phases } from './phases.ts'
import { expressionsIn } from './policy/engine/expressions-in.ts'
import { compileTraffic, loadPolicies, trafficSteps } from './policy/traffic.ts'
import { compileRequestHeaders } from './request_headers/traffic.ts'
import { compileResponseHeaders } from './response_headers/traffic.ts'
import { compileSaml } from './saml/traffic.ts'
import { compileTlsTermination } from './tls_termination/traffic.ts'
import type { ModuleTools } from './tools.ts'
import { compileUserAgentFilter, patternLists } from './user_agent_filter/traffic.ts'
import { compileWebhookVerification } from './webhook_verification/traffic.ts'
import { compileWebsocketTcpConverter } from './websocket_tcp_converter/traffic.ts'

/**
 * What a module does to traffic: only data planes load it. Settings are what the form of the module returns from `resolve`;
 * each module types its own. The methods must not use `this`.
 */
interface ModuleTraffic {
  /** That of its form. */
  readonly name: string
  /** Runs once per change, never per connection; throws when the settings cannot be served. */
  compile(this: void, settings: unknown, tools: ModuleTools): Phases
  /** Like `compile`, for costly settings: in steps, so that other work can run between them. */
  steps?(this: void, settings: unknown, tools: ModuleTools): Generator<void, Phases, void>
  /**
   * Starts to load the libraries that such settings need, when an edge first has them: a visitor who comes later must not
   * wait for that.
   */
  load?(this: void, settings: unknown): void
  /** The expressions that `compile` will ask its tools for, so that they can be parsed beforehand. */
  expressions?(this: void, settings: unknown): readonly string[]
  /** The lists of patterns that `compile` will ask its tools for, so that costly ones can be compiled beforehand. */
  patterns?(this: void, settings: unknown): readonly (readonly string[])[]
}

/**
 * The order within one phase: connections and requests run down this list, responses come back up it. A phase
 * that comes earlier runs earlier whatever this list says: on TCP and TLS edges `ip_restriction` judges the connection
 * before any handshake. `backend` comes after all of them and has nothing to compile: the edge turns its plan into targets.
 */
export const modulesInOrder: readonly ModuleTraffic[] = [
  // First: all that follows may need what TLS protects.
  { name: 'tls_termination', compile: compileTlsTermination },
  // Part of the same handshake: no request exists before it.
  { name: 'mutual_tls', compile: compileMutualTls },
  // Last change before the visitor: no other module sees it, and it applies to answers of all.
  { name: 'response_headers', compile: compileResponseHeaders },
  // On the way back after policy, whose rules see the response as the upstream sent it.
  { name: 'compression', compile: compileCompression },
  // Cheapest verdict, and it keeps strangers away from the login.
  { name: 'ip_restriction', compile: compileIpRestriction },
  // Still cheap, and a refused program should not be sent to log in.
  { name: 'user_agent_filter', compile: compileUserAgentFilter, patterns: patternLists },
  // Needs the body, so after what needs less; before logins, as webhooks cannot log in.
  { name: 'webhook_verification', compile: compileWebhookVerification },
  // The login that needs no redirect; only endpoints of agents have it.
  { name: 'basic_auth', compile: compileBasicAuth },
  // Before policy, so that no rule acts for an unknown visitor.
  { name: 'oauth', compile: compileOAuth },
  // As oauth: a route has at most one of the three enabled.
  { name: 'oidc', compile: compileOidc, load: loadLibrariesAhead },
  // As oauth.
  { name: 'saml', compile: compileSaml },
  // After all guards: only visitors who may come in learn that it refuses plain requests.
  { name: 'websocket_tcp_converter', compile: compileWebsocketTcpConverter },
  // Sees the request as the visitor sent it.
  { name: 'policy', compile: compileTraffic, steps: trafficSteps, load: loadPolicies, expressions: expressionsIn },
  // Innermost verdict: counts what goes upstream and comes back, not answers of others.
  { name: 'circuit_breaker', compile: compileCircuitBreaker },
  // Last change before upstream: no other module sees it.
  { name: 'request_headers', compile: compileRequestHeaders },
]
