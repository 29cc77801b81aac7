import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attentionOf } from './attention.ts'

const NOW = Date.parse('2026-03-01T00:00:00Z')
const nothing = {
  ...{ https: [], tls: [], tcp: [], groups: [], weighted: [], failover: [], domains: [] },
  ...{ certificates: [], authorities: [], broken: [], now: NOW },
}
const to = (id: string, enabled = true) => ({ enabled, backend: { id, uri: 'u' } })

test('nothing needs attention if nothing is set up, or if all works', () => {
  assert.deepEqual(attentionOf(nothing), [])
  const tcp = [{ id: 'e1', hostports: ['x:1'], backend: to('g1') }]
  const groups = [{ id: 'g1', tunnels: [{ id: 't', uri: 'u' }] }]
  const certificates = [{ id: 'c1', subject_common_name: 'x', not_after: '2026-06-01T00:00:00Z' }]
  assert.deepEqual(attentionOf({ ...nothing, tcp, groups, certificates }), [])
})

test('edges and routes that lead nowhere are listed, each with the reason', () => {
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
      '/edges/https/h1 has no routes, so every request gets a 404',
      '/edges/https/h2/routes/r1 leads to a tunnel group with no agent online',
      '/edges/tcp/e1 has no hostport, so it cannot be reached',
      '/edges/tcp/e2 has no backend, so visitors get an error',
      '/edges/tcp/e3 has no backend, so visitors get an error',
    ],
  )
})

test('certificates are listed from a month before they expire', () => {
  const certificates = [
    { id: 'c1', subject_common_name: 'soon', not_after: '2026-03-11T00:00:00Z' },
    { id: 'c2', subject_common_name: '', description: 'gone', not_after: '2026-02-01T00:00:00Z' },
  ]
  assert.deepEqual(
    attentionOf({ ...nothing, certificates }).map(({ name, why }) => `${name} ${why}`),
    ['soon expires in 10 days', 'gone expired 28 days ago'],
  )
})

test('an edge that chooses between backends is listed when none of them has an agent online', () => {
  const groups = [
    { id: 'g1', tunnels: [{ id: 't', uri: 'u' }] },
    { id: 'g2', tunnels: [] },
  ]
  // The outer one comes first, so that one round is not enough.
  const failover = [
    { id: 'f1', backends: ['w1', 'g2'] },
    { id: 'f2', backends: ['g2', 'g1'] },
    { id: 'f3', backends: ['g2', 'static'] },
  ]
  const weighted = [{ id: 'w1', backends: { g1: 0, g2: 5 } }]
  const tcp = ['f1', 'f2', 'f3', 'w1'].map((id) => ({ id: `e-${id}`, hostports: ['x:1'], backend: to(id) }))
  assert.deepEqual(
    attentionOf({ ...nothing, tcp, groups, weighted, failover }).map(({ path, why }) => `${path} ${why}`),
    ['f1', 'w1'].map((id) => `/edges/tcp/e-${id} leads to several backends, none of which has an agent online`),
  )
})

test('a name that could not get a certificate is listed with the reason, but not while it waits its turn', () => {
  const job = (error_code: string | null) => ({
    renews_at: null,
    provisioning_job: { error_code, msg: 'no such name' },
  })
  const domains = [
    { id: 'd1', domain: 'a.example.com', certificate_management_status: job('ERR_X') },
    { id: 'd2', domain: 'b.example.com', certificate_management_status: job(null) },
    { id: 'd3', domain: 'c.example.com', certificate_management_status: null },
  ]
  assert.deepEqual(attentionOf({ ...nothing, domains }), [
    { path: '/reserved_domains/d1', name: 'a.example.com', why: 'could not get a certificate: no such name' },
  ])
})

test('what the server cannot serve is listed with the reason, except for deleted edges', () => {
  const https = [{ id: 'h1', hostports: ['a:443'], routes: [{ id: 'r1', match: '/', backend: to('b') }] }]
  const tcp = [{ id: 'e1', hostports: ['x:1'], backend: to('b') }]
  const broken = [
    { edge_id: 'e1', route_id: null, reason: 'its port cannot be opened' },
    { edge_id: 'h1', route_id: 'r1', reason: 'module oidc: no' },
    { edge_id: 'gone', route_id: null, reason: 'x' },
  ]
  assert.deepEqual(attentionOf({ ...nothing, https, tcp, broken }), [
    { path: '/edges/tcp/e1', name: 'x:1', why: 'refuses traffic: its port cannot be opened' },
    { path: '/edges/https/h1/routes/r1', name: 'a:443', why: 'refuses traffic: module oidc: no' },
  ])
})
