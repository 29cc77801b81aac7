import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reached, request, visitor } from '../testing/test-request.ts'
import type { IpRestrictionSettings } from './form.ts'
import { ipRestriction } from './form.ts'
import { compileIpRestriction } from './traffic.ts'

const policies: Record<string, readonly { cidr: string; action: 'allow' | 'deny' }[]> = {
  ipp_a: [{ cidr: '110.0.0.0/8', action: 'allow' }],
  ipp_b: [{ cidr: '110.2.3.4/32', action: 'deny' }],
  ipp_v6: [{ cidr: '::/0', action: 'allow' }],
  ipp_empty: [],
}

function resolve(...ip_policy_ids: string[]): IpRestrictionSettings {
  const lookup = {
    ipRules: (id: string) => policies[id] ?? assert.fail(`no policy ${id}`),
    authority: () => assert.fail(),
    backend: () => assert.fail(),
  }
  return ipRestriction.resolve({ enabled: true, ip_policy_ids }, lookup, 'route')
}

const vectors: readonly [policies: string[], ip: string, passes: boolean][] = [
  [['ipp_a', 'ipp_b'], '110.2.3.4', false],
  [['ipp_a', 'ipp_b'], '110.9.9.9', true],
  [['ipp_a', 'ipp_b'], '9.9.9.9', false],
  [['ipp_a', 'ipp_b'], '2001:db8::1', false],
  [['ipp_b', 'ipp_a'], '110.2.3.4', false],
  [['ipp_a'], '::ffff:110.9.9.9', true],
  [['ipp_b'], '110.9.9.9', false],
  [['ipp_empty'], '110.9.9.9', false],
  [['ipp_empty', 'ipp_a'], '110.9.9.9', true],
  [['ipp_v6'], '110.9.9.9', false],
  [['ipp_v6'], 'fe80::1%eth0', true],
  [['ipp_a', 'ipp_v6'], 'nonsense', false],
  [['ipp_a', 'ipp_v6'], '', false],
]

for (const [ids, ip, passes] of vectors) {
  test(`${ids.join(' and ')}: ${ip || 'no address'} is ${passes ? 'let in' : 'kept out'}`, () => {
    const { accept, request: judge } = compileIpRestriction(resolve(...ids))
    const peer = { ...visitor, ip }
    const verdict = passes ? undefined : { refuse: 'IP_REFUSED' }
    assert.deepEqual(accept?.(peer, reached), verdict)
    const ctx = request({ peer })
    assert.deepEqual(judge?.(ctx), verdict)
    assert.equal(ctx.found.get('ip_policy.decision'), passes ? 'allow' : 'block')
  })
}

test('headers that a visitor sends do not change its address', () => {
  const { request: judge } = compileIpRestriction(resolve('ipp_a'))
  const headers = { 'x-forwarded-for': '110.9.9.9', forwarded: 'for=110.9.9.9', 'x-real-ip': '110.9.9.9' }
  assert.deepEqual(judge?.(request({ headers })), { refuse: 'IP_REFUSED' })
})

test('each connection is judged separately, and once', () => {
  const { request: judge } = compileIpRestriction({ allow: ['10.0.0.0/8'], deny: [] })
  const first = { ...visitor, ip: '10.0.0.1' }
  assert.equal(judge?.(request({ peer: first })), undefined)
  assert.equal(judge?.(request({ peer: first })), undefined)
  assert.deepEqual(judge?.(request({ peer: { ...visitor, ip: '11.0.0.1' } })), { refuse: 'IP_REFUSED' })
})

test('invalid rules cannot be compiled', () => {
  assert.throws(() => compileIpRestriction({ allow: ['10.0.0.0'], deny: [] }), /no mask/)
})
