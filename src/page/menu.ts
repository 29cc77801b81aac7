/** The places of the page, in the order of its menu. */
import { isWithin } from './page-location.ts'

interface MenuEntry {
  /** Below each resource, the paths are those of the API. */
  readonly path: string
  readonly title: string
  /** Whether only admins may see it. */
  readonly isForAdmins?: true
}

export interface MenuGroup {
  readonly title: string
  readonly entries: readonly MenuEntry[]
}

export const groups: readonly MenuGroup[] = [
  {
    title: 'Live',
    entries: [
      { path: '/', title: 'Overview' },
      { path: '/endpoints', title: 'Endpoints' },
      { path: '/tunnels', title: 'Tunnels' },
      { path: '/tunnel_sessions', title: 'Sessions' },
      { path: '/traffic', title: 'Traffic' },
      { path: '/captures', title: 'Captures' },
      { path: '/nodes', title: 'Nodes', isForAdmins: true },
    ],
  },
  {
    title: 'Edges',
    entries: [
      { path: '/edges/https', title: 'HTTPS edges' },
      { path: '/edges/tls', title: 'TLS edges' },
      { path: '/edges/tcp', title: 'TCP edges' },
      { path: '/policy', title: 'Policy' },
    ],
  },
  {
    title: 'Backends',
    entries: [
      { path: '/backends/tunnel_group', title: 'Tunnel groups' },
      { path: '/backends/static', title: 'Static addresses' },
      { path: '/backends/http_response', title: 'HTTP responses' },
      { path: '/backends/weighted', title: 'Weighted' },
      { path: '/backends/failover', title: 'Failover' },
    ],
  },
  {
    title: 'Names and certificates',
    entries: [
      { path: '/reserved_domains', title: 'Domains' },
      { path: '/reserved_addrs', title: 'TCP addresses' },
      { path: '/agent_ingresses', title: 'Agent ingresses' },
      { path: '/tls_certificates', title: 'TLS certificates' },
      { path: '/certificate_authorities', title: 'Certificate authorities' },
    ],
  },
  {
    title: 'Access control',
    entries: [
      { path: '/ip_policies', title: 'IP policies' },
      { path: '/ip_policy_rules', title: 'IP policy rules' },
      { path: '/ip_restrictions', title: 'IP restrictions', isForAdmins: true },
      { path: '/app/users', title: 'Visitors' },
      { path: '/app/sessions', title: 'Visitor logins' },
    ],
  },
  {
    title: 'Keys and users',
    entries: [
      { path: '/api_keys', title: 'API keys' },
      { path: '/credentials', title: 'Credentials' },
      { path: '/ssh_credentials', title: 'SSH credentials' },
      { path: '/users', title: 'Users', isForAdmins: true },
      { path: '/bot_users', title: 'Bots', isForAdmins: true },
      { path: '/ssh_certificate_authorities', title: 'SSH authorities' },
      { path: '/ssh_user_certificates', title: 'SSH user certificates' },
      { path: '/ssh_host_certificates', title: 'SSH host certificates' },
    ],
  },
]

/** Whether a path is hidden from members. */
export function isForAdmins(path: string): boolean {
  return groups.some(({ entries }) => entries.some((entry) => entry.isForAdmins && isWithin(path, entry.path)))
}
