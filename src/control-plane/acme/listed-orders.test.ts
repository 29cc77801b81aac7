import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findListed } from './listed-orders.ts'
import { AcmeFault } from './order-fault.ts'

const ACCOUNT = 'https://ca.test/account'
const LIST = 'https://ca.test/list'

/** Looks for an order that is `wanted`; `answers` are bodies by their address, and links to the next page. */
async function search(answers: Readonly<Record<string, unknown>>, next: Readonly<Record<string, string>> = {}) {
  const asked: string[] = []
  const found = await findListed(ACCOUNT, {
    async ask(url) {
      asked.push(url)
      const data = answers[url]
      if (data instanceof Error) throw data
      const link =
        next[url] === undefined ? {} : { link: `<https://ca.test/dir>;rel="index", <${next[url]}>;rel="next"` }
      return { data, headers: link }
    },
    isSought: ({ status }) => status === 'wanted',
  })
  return { found, asked }
}

test('an order is found on any page, and nothing is requested after it', async () => {
  const { found, asked } = await search(
    {
      [ACCOUNT]: { orders: LIST },
      [LIST]: { orders: ['a', 'b'] },
      '/2': { orders: ['c', 'd'] },
      a: { status: 'valid' },
      b: null,
      c: { status: 'wanted' },
    },
    { [LIST]: '/2' },
  )
  assert.deepEqual(found, { url: 'c', order: { status: 'wanted' } })
  assert.deepEqual(asked, [ACCOUNT, LIST, 'a', 'b', '/2', 'c'])
})

for (const account of [undefined, null, 'text', {}, { orders: 7 }]) {
  test(`an account of ${JSON.stringify(account)} has no list`, async () => {
    const { found, asked } = await search({ [ACCOUNT]: account })
    assert.equal(found, undefined)
    assert.equal(asked.length, 1)
  })
}

test('a list without end is given up', async () => {
  const { asked } = await search({ [ACCOUNT]: { orders: LIST }, [LIST]: { orders: ['a'] } }, { [LIST]: LIST })
  assert.ok(asked.length < 100, String(asked.length))
  const long = await search({ [ACCOUNT]: { orders: LIST }, [LIST]: { orders: Array(5000).fill('a') } })
  assert.ok(long.asked.length < 100, String(long.asked.length))
  assert.equal(long.found, undefined)
})

test('a missing order is skipped, and an unreachable authority is reported', async () => {
  const gone = new AcmeFault('CERTIFICATE_REFUSED', 'no such order')
  const listed = { [ACCOUNT]: { orders: LIST }, [LIST]: { orders: ['a', 'b'] }, b: { status: 'wanted' } }
  assert.equal((await search({ ...listed, a: gone })).found?.url, 'b')
  const away = new AcmeFault('AUTHORITY_UNAVAILABLE', '')
  await assert.rejects(search({ ...listed, a: away }), away)
})
