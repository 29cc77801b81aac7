import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attentionOf } from './attention.ts'

const NOW = Date.parse('2026-03-01T00:00:00Z')
const nothing = { https: [], tls: [], tcp: [], groups: [], certificates: [], authorities: [], now: NOW }
const to = (id: string, enabled = true) => ({ enabled, backend: { id, uri: 'u' } })

test('nothing needs attention where nothing is set up, or all is well', () => {
  assert.deepEqual(attentionOf(nothing), [])
  const tcp = [{ id: 'e1', hostports: ['x:1'], backend: to('g1') }]
  const groups = [{ id: 'g1', tunnels: [{ id: 't', uri: 'u' }] }]
  const certificates = [{ id: 'c1', subject_common_name: 'x', not_after: '2026-06-01T00:00:00Z' }]
  assert.deepEqual(attentionOf({ ...nothing, tcp, groups, certificates }), [])
})

test('edges and routes that lead nowhere are told, each with what is wrong', () => {
  const tcp = [
    { id: 'e1', hostports: null, backend: to('g1') },
    { id: 'e2', hostports: ['x:2'], backend: null },
    { id: 'e3', hostports: ['x:3'], backend: to('g1', false) },
  ]
  const https = [
    { id: 'h1', hostports: ['a:443'], routes: [] },
    { id: 'h2', hostports: ['b:443'], routes: [{ id: 'r1', match: '/', backend: to('g2') }] },
  ]
  const groups = [
    { id: 'g1', tunnels: [{ id: 't', uri: 'u' }] },
    { id: 'g2', tunnels: [] },
  ]
  assert.deepEqual(
    attentionOf({ ...nothing, tcp, https, groups }).map(({ path, why }) => `${path} ${why}`),
    [
      '/edges/https/h1 has no route, so every request is answered with 404',
      '/edges/https/h2/routes/r1 leads to a tunnel group that no agent serves now',
      '/edges/tcp/e1 has no address, so nobody reaches it',
      '/edges/tcp/e2 has no backend, so visitors get an error',
      '/edges/tcp/e3 has no backend, so visitors get an error',
    ],
  )
})

test('certificates are told of a month before they run out, and after', () => {
  const certificates = [
    { id: 'c1', subject_common_name: 'soon', not_after: '2026-03-11T00:00:00Z' },
    { id: 'c2', subject_common_name: '', description: 'gone', not_after: '2026-02-01T00:00:00Z' },
  ]
  assert.deepEqual(
    attentionOf({ ...nothing, certificates }).map(({ name, why }) => `${name} ${why}`),
    ['soon runs out in 10 days', 'gone ran out 28 days ago'],
  )
})
