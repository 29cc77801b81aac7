/** The official npm client, unmodified, as a flat table of its services, and what we serve of each. */
import { Ngrok } from '@ngrok/ngrok-api'
import type { Json } from '../../support/api-client.ts'

type Method = (...args: readonly Json[]) => Promise<Json>

/** All methods of services; each service has some of them. The client camel-cases what they take and return. */
export type Service = Readonly<
  Record<'create' | 'get' | 'list' | 'update' | 'delete' | 'replace' | 'restart' | 'stop' | ClearMethod, Method>
>
type ClearMethod = 'deleteCertificate' | 'deleteCertificateManagementPolicy'

export interface NpmClient {
  /** One service by name, such as `apiKeys` or `edges.edgesTcp`. */
  service(name: string): Service
  readonly names: readonly string[]
  /** Public methods of a service. */
  methods(name: string): readonly string[]
  /** The methods that were called through `service`, such as `apiKeys.create`. */
  readonly called: ReadonlySet<string>
}

export function npmClient(baseUrl: string, apiToken: string): NpmClient {
  const services = new Map(servicesIn(new Ngrok({ baseUrl, apiToken }), ''))
  const called = new Set<string>()
  const find = (name: string): Service => {
    const service = services.get(name)
    if (!service) throw new Error(`the client has no service ${name}`)
    return service
  }
  return {
    names: [...services.keys()],
    called,
    methods: (name) =>
      Object.getOwnPropertyNames(Object.getPrototypeOf(find(name))).filter((each) => !/^(_|constructor$)/.test(each)),
    service: (name) =>
      new Proxy(find(name), {
        get(target, property: string) {
          called.add(`${name}.${property}`)
          return Reflect.get(target, property)
        },
      }),
  }
}

/** Finds services: each is an instance of its own class, and plain objects are groups of them. */
function* servicesIn(holder: object, prefix: string): Iterable<[name: string, service: Service]> {
  for (const [name, value] of Object.entries(holder) as [string, unknown][]) {
    if (typeof value !== 'object' || value === null || name === 'httpClient') continue
    if (Object.getPrototypeOf(value) === Object.prototype) yield* servicesIn(value, `${prefix}${name}.`)
    else yield [`${prefix}${name}`, value as Service]
  }
}

/** Services with create, get, list, update and delete, each with our kind of resource. */
export const collections: Readonly<Record<string, string>> = {
  agentIngresses: 'agent_ingress',
  apiKeys: 'api_key',
  botUsers: 'bot_user',
  certificateAuthorities: 'certificate_authority',
  credentials: 'credential',
  ipPolicies: 'ip_policy',
  ipPolicyRules: 'ip_policy_rule',
  ipRestrictions: 'ip_restriction',
  reservedAddrs: 'reserved_addr',
  reservedDomains: 'reserved_domain',
  sshCertificateAuthorities: 'ssh_certificate_authority',
  sshCredentials: 'ssh_credential',
  sshHostCertificates: 'ssh_host_certificate',
  sshUserCertificates: 'ssh_user_certificate',
  tlsCertificates: 'tls_certificate',
  'backends.failoverBackends': 'failover_backend',
  'backends.httpResponseBackends': 'http_response_backend',
  'backends.staticBackends': 'static_backend',
  'backends.tunnelGroupBackends': 'tunnel_group_backend',
  'backends.weightedBackends': 'weighted_backend',
  'edges.edgesHttps': 'https_edge',
  'edges.edgesTcp': 'tcp_edge',
  'edges.edgesTls': 'tls_edge',
}

/** Services that read what is online. */
export const present: readonly string[] = ['endpoints', 'tunnels', 'tunnelSessions']

/** Services that read and end logins. */
export const loggedIn: readonly string[] = ['applicationUsers', 'applicationSessions']

export const ROUTES = 'edges.edgesHttpsRoutes'

/** Services of one module: where it is set, and its name. */
export const modules: Readonly<Record<string, readonly [on: 'https' | 'route' | 'tcp' | 'tls', module: string]>> = {
  'edgeModules.httpsEdgeMutualTlsModule': ['https', 'mutual_tls'],
  'edgeModules.httpsEdgeTlsTerminationModule': ['https', 'tls_termination'],
  'edgeModules.edgeRouteBackendModule': ['route', 'backend'],
  'edgeModules.edgeRouteIpRestrictionModule': ['route', 'ip_restriction'],
  'edgeModules.edgeRouteRequestHeadersModule': ['route', 'request_headers'],
  'edgeModules.edgeRouteResponseHeadersModule': ['route', 'response_headers'],
  'edgeModules.edgeRouteCompressionModule': ['route', 'compression'],
  'edgeModules.edgeRouteCircuitBreakerModule': ['route', 'circuit_breaker'],
  'edgeModules.edgeRouteWebhookVerificationModule': ['route', 'webhook_verification'],
  'edgeModules.edgeRouteOAuthModule': ['route', 'oauth'],
  'edgeModules.edgeRouteOidcModule': ['route', 'oidc'],
  'edgeModules.edgeRouteSamlModule': ['route', 'saml'],
  'edgeModules.edgeRouteWebsocketTcpConverterModule': ['route', 'websocket_tcp_converter'],
  'edgeModules.edgeRouteUserAgentFilterModule': ['route', 'user_agent_filter'],
  'edgeModules.tcpEdgeBackendModule': ['tcp', 'backend'],
  'edgeModules.tcpEdgeIpRestrictionModule': ['tcp', 'ip_restriction'],
  'edgeModules.tlsEdgeBackendModule': ['tls', 'backend'],
  'edgeModules.tlsEdgeIpRestrictionModule': ['tls', 'ip_restriction'],
  'edgeModules.tlsEdgeMutualTlsModule': ['tls', 'mutual_tls'],
  'edgeModules.tlsEdgeTlsTerminationModule': ['tls', 'tls_termination'],
}

/** Services that we do not serve, and why. */
export const notServed: Readonly<Record<string, string>> = {
  abuseReports: 'takes complaints about the hosted service; operators of their own server get them directly',
  eventDestinations: 'writes to the vendor’s cloud partners; metrics and logs are read at the server',
  eventSubscriptions: 'chooses what goes to event destinations, which do not exist',
  eventSources: 'part of event subscriptions, which do not exist',
}
