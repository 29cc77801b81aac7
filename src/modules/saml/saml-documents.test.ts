/** Documents on the threads that read them in a server: the same outcome, and visitors do not wait. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { TurnProbe } from '../../../test/support/turn-probe.ts'
import { WorkerPool } from '../../lib/threads/worker-pool.ts'
import { samlDocuments } from './saml-documents.ts'
import { TestIdp } from './testing/test-idp.ts'

/** In milliseconds of processor time. */
const MAX_TURN = 20

const idp = await TestIdp.make()
/** Only our own thread is measured: theirs may take long on a busy machine. */
const pool = new WorkerPool(new URL('../../server/compose/data-thread.ts', import.meta.url))
after(() => pool.close())
const lane = pool.lane('saml', { limitMs: 60_000 })
const threads = samlDocuments(({ owner, source }, work) => lane.run(owner, work, source))
const a = { owner: 'usr_a', source: '192.0.2.1' }

const asked = { requestId: '_1', relayState: '', acs: 'https://a.example.com/acs', entityId: 'https://a.example.com/' }
const certificates = [idp.key.certificate]
const base64 = (xml: string): string => Buffer.from(xml).toString('base64')

test('metadata, answers and logout requests are read', async () => {
  const provider = await threads.metadata(a, idp.metadata)
  assert.ok(!('fault' in provider))
  assert.deepEqual(provider.certificates, certificates)
  const answer = await threads.answer(a, base64(await idp.answer(asked)), certificates)
  assert.ok(!('fault' in answer))
  assert.deepEqual(answer.assertion.nameIds, ['ada'])
  const request = idp.logoutForm('https://a.example.com/slo', { logoutNameID: 'ada' })
  const logout = await threads.logoutRequest(a, { binding: 'post', request }, certificates)
  assert.ok(!('fault' in logout))
  assert.equal(logout.nameId, 'ada')
})

test('faults are returned as values', async () => {
  assert.deepEqual(await threads.metadata(a, '<a>'), {
    fault: 'unreadable',
    reason: 'metadata must be XML that is well-formed and has no DTD; line 1: it ends before its elements are closed',
  })
  assert.deepEqual(await threads.answer(a, '!', certificates), { fault: 'unreadable', reason: 'it is not base64' })
})

/** Just below what a form can hold. */
const KIB = 185 * 1024

const groups = Array.from({ length: 2500 }, (_, i) => `cn=group-${i},dc=example,dc=com`)
const large = await idp.answer(asked, { attributes: { groups } })

const heavy: Record<string, string> = {
  'an answer with thousands of groups': large,
  'the same, changed': large.replace('>ada<', '>root<'),
  'very many elements': `<a>${'<b/>'.repeat(KIB / 4)}`,
  'elements inside each other': '<a>'.repeat(KIB / 3),
  'very many attributes': `<a ${Array.from({ length: KIB / 12 }, (_, i) => `a${i}="1"`).join(' ')}/>`,
  'very many namespaces': `<a ${Array.from({ length: KIB / 20 }, (_, i) => `xmlns:a${i}="u"`).join(' ')}/>`,
  'references without end': `<a>${'&#x'.repeat(KIB / 3)}</a>`,
  'a long row of brackets': '<'.repeat(KIB),
}

for (const [what, xml] of Object.entries(heavy)) {
  test(`no visitor waits for ${what}`, async () => {
    const text = base64(xml)
    const probe = new TurnProbe()
    try {
      await threads.answer(a, text, certificates)
      const { cpuMs, collectorMs } = probe.take()
      assert.ok(cpuMs - collectorMs < MAX_TURN, `a turn took ${Math.round(cpuMs)} ms`)
    } finally {
      probe.stop()
    }
  })
}
