/** Examples of bodies in the API document. */
import type { ApiRoute } from './routes.ts'

type Example = Readonly<Record<string, unknown>>

/** An example of the body that a route takes; undefined where it takes none, or none can be given. */
export function exampleOf({ action, resource, body, form }: ApiRoute): Example | undefined {
  if (!body) return undefined
  if (action === 'put_module') return modules[form?.name ?? '']
  const example = created[resource.kind]
  return action === 'update' ? updateOf(example ?? words, body) : example
}

/** The fields of a create example that an update takes. */
function updateOf(example: Example, { properties }: NonNullable<ApiRoute['body']>): Example {
  return Object.fromEntries(Object.entries(example).filter(([name]) => Object.hasOwn(properties, name)))
}

/**
 * Stands for the part of an id after its prefix. An example works once its ids are replaced by those of existing resources.
 */
const SOME = '3Fv0n7mD0vFqPz2d1cXk9wRb5Ty'

const words = { description: 'the shop', metadata: '{"team":"web"}' } as const

const publicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOEbXk1YzEpn/6cnScRr70Pcc24IAu3t8tFiGzmNu6ZW ada@example.com'

/** CN=Example Root, valid until 2046; nobody has its key. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIB2DCCAX6gAwIBAgIUaMMtxiAUbTcwB2BjQyqgjrMIK1owCgYIKoZIzj0EAwIw
KTEVMBMGA1UEAwwMRXhhbXBsZSBSb290MRAwDgYDVQQKDAdFeGFtcGxlMB4XDTI2
MTExNTAyMzQzNloXDTQ2MTExMDAyMzQzNlowKTEVMBMGA1UEAwwMRXhhbXBsZSBS
b290MRAwDgYDVQQKDAdFeGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
xZSW/KzJ1jIBczExBL7qZn8I2gqKmF3k2urV3EDF56g88a8MaAidUWhhzThsQgRj
sLYd0gLVP+MeZ9/WDQKecKOBgzCBgDAdBgNVHQ4EFgQUylPQZ3WjSgXWbGxmIXh+
de8loEcwHwYDVR0jBBgwFoAUylPQZ3WjSgXWbGxmIXh+de8loEcwDwYDVR0TAQH/
BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAYYwHQYDVR0lBBYwFAYIKwYBBQUHAwEGCCsG
AQUFBwMCMAoGCCqGSM49BAMCA0gAMEUCIQC0vjDntuMGTUIL8Tm2AUxWNBhhAEux
ekr30O1EFnGEpAIgQoVugTPDw2ja/UQ3hGUVWYGa36R8wbr61UKyzGedzhI=
-----END CERTIFICATE-----
`

const modules: Readonly<Record<string, Example>> = {
  backend: { backend_id: `bkdtg_${SOME}` },
  ip_restriction: { ip_policy_ids: [`ipp_${SOME}`] },
  mutual_tls: { certificate_authority_ids: [`ca_${SOME}`] },
  tls_termination: { terminate_at: 'edge', min_version: '1.3' },
  policy: { inbound: [{ name: 'nobody', actions: [{ type: 'deny' }] }] },
  traffic_policy: { value: '{"inbound":[{"name":"nobody","actions":[{"type":"deny"}]}]}' },
  circuit_breaker: { error_threshold_percentage: 0.5, tripped_duration: 10 },
  compression: { enabled: true },
  request_headers: { add: { 'x-from': 'shop' }, remove: ['x-debug'] },
  response_headers: { add: { 'strict-transport-security': 'max-age=31536000' }, remove: ['server'] },
  oauth: { provider: { github: { client_id: 'shop', client_secret: 'hush', organizations: ['acme'] } } },
  oidc: { issuer: 'https://id.example.com', client_id: 'shop', client_secret: 'hush', scopes: ['email'] },
  saml: { idp_metadata_url: 'https://id.example.com/metadata', authorized_groups: ['staff'] },
  user_agent_filter: { deny: ['(?i)bot'] },
  webhook_verification: { provider: 'github', secret: 'hush' },
  websocket_tcp_converter: { enabled: true },
}

/** By kind of resource. None has a private key: people who copied it would use a key that is public. */
const created: Readonly<Record<string, Example>> = {
  exchange: { method: 'PUT', path: '/cart?id=7', body: { content: '{"paid":true}' } },
  capture: { edge_id: `edghts_${SOME}`, bodies: true, duration: 300 },
  api_key: words,
  ssh_credential: { ...words, acl: ['bind:shop.example.com'], public_key: publicKey },
  credential: { ...words, acl: ['bind:shop.example.com'] },
  bot_user: { name: 'deploys', active: true },
  user: { name: 'Ada', role: 'member' },
  tcp_edge: { ...words, hostports: ['tcp.example.com:20001'], backend: modules.backend },
  tls_edge: { ...words, hostports: ['mail.example.com:443'], backend: modules.backend },
  https_edge: { ...words, hostports: ['shop.example.com:443'] },
  https_edge_route: { ...words, match_type: 'path_prefix', match: '/', backend: modules.backend },
  tunnel_group_backend: { ...words, labels: { app: 'shop' } },
  http_response_backend: { ...words, status_code: 503, headers: { 'retry-after': '60' }, body: 'Back soon.' },
  weighted_backend: { ...words, backends: { [`bkdtg_${SOME}`]: 9, [`bkdhr_${SOME}`]: 1 } },
  failover_backend: { ...words, backends: [`bkdtg_${SOME}`, `bkdhr_${SOME}`] },
  static_backend: { ...words, address: 'db.example.com:5432', tls: { enabled: true } },
  reserved_addr: words,
  reserved_domain: { ...words, domain: 'shop.example.com' },
  agent_ingress: { ...words, domain: 'connect.example.com' },
  ip_policy: words,
  ip_policy_rule: { ...words, cidr: '192.0.2.0/24', action: 'allow', ip_policy_id: `ipp_${SOME}` },
  certificate_authority: { ...words, ca_pem: certificate },
  ip_restriction: { ...words, type: 'agent', ip_policy_ids: [`ipp_${SOME}`], enforced: false },
  ssh_certificate_authority: { ...words, private_key_type: 'ed25519' },
  ssh_user_certificate: {
    ...words,
    ssh_certificate_authority_id: `sshca_${SOME}`,
    public_key: publicKey,
    principals: ['ada'],
  },
  ssh_host_certificate: {
    ...words,
    ssh_certificate_authority_id: `sshca_${SOME}`,
    public_key: publicKey,
    principals: ['ssh.example.com'],
  },
  policy_explanation: {
    policy: { inbound: [{ expressions: ["req.url.path.startsWith('/admin')"], actions: [{ type: 'deny' }] }] },
    request: { url: 'https://shop.example.com/admin' },
  },
}
