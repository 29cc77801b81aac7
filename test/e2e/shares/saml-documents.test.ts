/** SAML documents: a flood from many addresses at the edges of one owner, and the visitors of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WorkerLane } from '../../../src/lib/threads/worker-pool.ts'
import { shared } from '../../../src/model/shared.ts'
import type { AnswerFault } from '../../../src/modules/saml/answer.ts'
import { type SamlWork, samlDocuments } from '../../../src/modules/saml/saml-documents.ts'
import { HeldWork } from './held-work.ts'

const { most } = shared.samlDocuments

const base64 = (text: string): string => Buffer.from(text).toString('base64')
/** As anybody can send it: it looks signed. */
const signed = base64(`<Response><SignatureValue/>${' '.repeat(38 * 1024)}</Response>`)
const read: AnswerFault = { fault: 'unreadable', reason: 'it was read' }

/** Documents that threads read once the test lets them. */
function held() {
  const work = new HeldWork()
  const lane = new WorkerLane(async (piece) => {
    await work.begin((piece as SamlWork).kind)
    return read
  }, most)
  return { work, documents: samlDocuments(({ owner, source }, piece) => lane.run(owner, piece, source)) }
}

async function refusedOf(reads: readonly Promise<unknown>[]): Promise<number> {
  const outcomes = await Promise.allSettled(reads)
  return outcomes.filter(({ status }) => status === 'rejected').length
}

async function readAll(work: HeldWork): Promise<void> {
  while (work.underWay > 0) await work.letGo()
}

test('a flood at the edges of one owner refuses no document at those of another', async () => {
  const { work, documents } = held()
  const flood = refusedOf(
    Array.from({ length: 2 * most }, (_, i) =>
      documents.logoutRequest(
        { owner: 'usr_a', source: `192.0.2.${i % 250}` },
        { binding: 'post', request: signed },
        [],
      ),
    ),
  )
  assert.equal(work.underWay, 1, 'its owner has one of the two threads')
  const visitors = refusedOf(
    Array.from({ length: most / 4 }, (_, i) =>
      documents.answer({ owner: 'usr_b', source: `198.51.100.${i}` }, signed, []),
    ),
  )
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(work.begun, ['logout', 'answer'])
  await readAll(work)
  assert.deepEqual(await Promise.all([visitors, flood]), [0, most - 1 + most / 4 - 1])
})

test('at the edges of one owner, the source that sends most gives up first', async () => {
  const { work, documents } = held()
  const from = (source: string) => documents.answer({ owner: 'usr_a', source }, signed, [])
  const flood = Array.from({ length: 3 * most }, () => from('2001:db8:0:0'))
  const visitors = Array.from({ length: 20 }, (_, i) => from(`198.51.100.${i}`))
  const outcomes = Promise.all([refusedOf(visitors), refusedOf(flood)])
  await readAll(work)
  assert.deepEqual(await outcomes, [0, 2 * most - 1 + 20])
})

test('a document without a signature in its text takes no place', async () => {
  const { work, documents } = held()
  const stranger = { owner: 'usr_a', source: '192.0.2.1' }
  const request = base64(`<samlp:LogoutRequest>${'<a/>'.repeat(9000)}</samlp:LogoutRequest>`)
  const answer = base64('<Status><StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></Status>')
  const unsigned = { fault: 'unsigned', reason: 'it has no signature' }
  assert.deepEqual(await documents.logoutRequest(stranger, { binding: 'post', request }, []), unsigned)
  assert.deepEqual(await documents.answer(stranger, answer, []), unsigned)
  assert.deepEqual(work.begun, [])
})
