/**
 * A program that a user could write with a client made from the API document. It is checked against the types that
 * openapi-typescript makes of that document (`schema.d.ts`, beside it when it runs), and then run.
 *
 * @import { paths } from './schema.js'
 */
import createClient from 'openapi-fetch'

/** @param {string} baseUrl @param {string} token */
export async function callEverything(baseUrl, token) {
  /** @type {import('openapi-fetch').Client<paths>} */
  const client = createClient({ baseUrl, headers: { Authorization: `Bearer ${token}` } })
  const header = { 'Service-Version': /** @type {const} */ ('2') }

  const policy = await client.POST('/ip_policies', {
    params: { header },
    body: { description: 'the shop', metadata: null },
  })
  if (!policy.data) throw new Error(policy.error.msg)
  const { id } = policy.data

  const rule = await client.POST('/ip_policy_rules', {
    params: { header },
    body: { cidr: '192.0.2.0/24', action: 'allow', ip_policy_id: id },
  })
  if (!rule.data) throw new Error(rule.error.msg)
  /** @type {'allow' | 'deny'} */
  const action = rule.data.action

  const group = await client.POST('/backends/tunnel_group', { params: { header }, body: { labels: { app: 'shop' } } })
  if (!group.data) throw new Error(group.error.msg)
  /** @type {string | undefined} */
  const label = group.data.labels.app

  const edge = await client.POST('/edges/tcp', { params: { header }, body: { backend: { backend_id: group.data.id } } })
  if (!edge.data) throw new Error(edge.error.msg)
  const restricted = await client.PUT('/edges/tcp/{id}/ip_restriction', {
    params: { header, path: { id: edge.data.id } },
    body: { ip_policy_ids: [id] },
  })
  const changed = await client.PATCH('/ip_policies/{id}', {
    params: { header, path: { id } },
    body: { description: 'another' },
  })
  const list = await client.GET('/ip_policies', { params: { header, query: { limit: 1 } } })
  /** @type {string | null | undefined} */
  const next = list.data?.next_page_uri
  const missing = await client.GET('/edges/tls/{id}', { params: { header, path: { id: 'edgtls_1' } } })
  const deleted = await client.DELETE('/edges/tcp/{id}', { params: { header, path: { id: edge.data.id } } })

  return {
    action,
    label,
    next,
    restrictedTo: restricted.data?.ip_policies.map((each) => each.id),
    description: changed.data?.description,
    listed: list.data?.ip_policies.map((each) => each.description),
    missing: missing.error?.error_code,
    deleted: deleted.response.status,
  }
}
