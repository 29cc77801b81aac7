import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compilePatterns } from '../../lib/patterns/pattern-search.ts'
import { request } from '../testing/test-request.ts'
import type { UserAgentFilterSettings } from './form.ts'
import { compileUserAgentFilter } from './traffic.ts'

const judge = (settings: Partial<UserAgentFilterSettings>) => {
  const { request: phase } = compileUserAgentFilter({ allow: [], deny: [], ...settings }, { search: compilePatterns })
  return (agent: string | readonly string[] | undefined) => {
    const ctx = request({ headers: agent === undefined ? {} : { 'User-Agent': agent } })
    const verdict = phase?.(ctx)
    assert.deepEqual(verdict, ctx.found.get('user_agent_filter.decision') === 'allow' ? undefined : refused)
    return verdict === undefined
  }
}
const refused = { refuse: 'USER_AGENT_REFUSED' }

type Agent = string | readonly string[] | undefined
const vectors: readonly [settings: Partial<UserAgentFilterSettings>, agent: Agent, passes: boolean][] = [
  [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, 'Google-Images/1', true],
  [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, 'Googlebot/2', false],
  [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, 'curl/8', true],
  [{ allow: ['(?i)google-images'], deny: ['(?i)google'] }, undefined, false],
  [{ allow: ['^$'] }, undefined, true],
  [{ allow: ['^$'] }, '', true],
  [{ allow: ['Foo'] }, 'Bar', true],
  [{ allow: ['Foo'] }, undefined, false],
  [{}, 'anything', true],
  [{}, undefined, false],
  [{}, '', false],
  [{ deny: ['.*'] }, 'x', false],
  [{ deny: ['evil'] }, ['good', 'evil'], false],
  [{ deny: ['evil'] }, ['good', 'kind'], true],
  [{ deny: ['evil'] }, ['good', ''], false],
  [{ deny: ['evil'] }, ['a', 'b', 'c', 'd'], true],
  [{ deny: ['evil'] }, ['a', 'b', 'c', 'd', 'e'], false],
  [{ deny: ['evil'] }, ['evil', 'good'], false],
  [{ deny: ['é'] }, Buffer.from('caf\u00e9').toString('latin1'), false],
]

for (const [settings, agent, passes] of vectors) {
  test(`${JSON.stringify(settings)}: ${JSON.stringify(agent) ?? 'no header'} ${passes ? 'passes' : 'is refused'}`, () => {
    const verdict = judge(settings)
    assert.equal(verdict(agent), passes)
    assert.equal(verdict(agent), passes, 'when asked again')
  })
}

test('a long header cannot carry a denied word past the filter', () => {
  const verdict = judge({ deny: ['(?i)badbot'] })
  assert.equal(verdict(`${'x'.repeat(60_000)} BadBot`), false)
  assert.equal(verdict('x'.repeat(30_000)), true)
})

test('a header that is too costly to judge is refused', () => {
  const verdict = judge({ deny: ['[ab]*a[ab]{900}c'] })
  assert.equal(verdict('ab'.repeat(2000)), false)
  assert.equal(verdict('Mozilla/5.0'), true)
})

test('a costly allow pattern lets nothing in', () => {
  assert.equal(judge({ allow: ['[ab]*a[ab]{900}c'], deny: ['zzz'] })('ab'.repeat(2000)), false)
})

test("the largest number of elaborate patterns can still judge a browser's header", () => {
  const list = Array.from({ length: 100 }, (_, i) => `(?i)^mozilla/\\d+\\.\\d+ .*(bot|crawler|spider)-${i}/`)
  const browser =
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36'
  assert.equal(judge({ allow: list, deny: list.map((each) => each.replace('-', '_')) })(browser), true)
})

test('more headers than are remembered are judged alike', () => {
  const verdict = judge({ deny: ['odd'] })
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 1500; i++) assert.equal(verdict(`agent ${i} ${i % 2 ? 'odd' : 'even'}`), i % 2 === 0)
  }
})
