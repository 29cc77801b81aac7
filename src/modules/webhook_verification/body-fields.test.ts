import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, mock, test } from 'node:test'
import fc from 'fast-check'
import { request } from '../testing/test-request.ts'
import { formField, jsonFields, MAX_FORM_FIELDS } from './body-fields.ts'
import { compileWebhookVerification } from './traffic.ts'

const MIB = 1024 * 1024

const fieldsOf = async (text: string, ...names: string[]) =>
  Object.fromEntries(await jsonFields(Buffer.from(text), names))

describe('fields of JSON', () => {
  test('are those of the outermost object, as JSON.parse reads them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom('a', 'b', 'é"\\', '}'), fc.jsonValue()), async (object) => {
        for (const text of [
          JSON.stringify(object),
          JSON.stringify(object, undefined, 2),
          ` \n${JSON.stringify(object)} `,
        ]) {
          const wanted = Object.fromEntries(Object.entries(JSON.parse(text)).filter(([name]) => name !== 'b'))
          assert.deepEqual(await fieldsOf(text, 'a', 'é"\\', '}'), { ...wanted })
        }
      }),
    )
  })

  test('do not include those in nested objects, strings or lists', async () => {
    for (const text of [
      '{"b":{"a":1}}',
      '{"b":"\\",\\"a\\":1"}',
      '[{"a":1}]',
      '"a":1',
      '7{"a":1}',
      '',
      '{',
      '"{\\"a\\":1}"',
    ]) {
      assert.deepEqual(await fieldsOf(text, 'a'), {}, text)
    }
  })

  test('the last of two counts; a long or malformed one has no value', async () => {
    assert.deepEqual(await fieldsOf('{"a":1,"\\u0061":2}', 'a'), { a: 2 })
    assert.deepEqual(await fieldsOf(`{"a":"${'x'.repeat(5000)}","b":x}`, 'a', 'b'), { a: undefined, b: undefined })
  })
})

test('fields of a form: the first counts, decoded; not after very many others', () => {
  const read = (text: string) => formField(Buffer.from(text), 'a')
  assert.equal(read('b=a=1&a=x%20y+z&a=2'), 'x y z')
  for (const text of ['', 'a', 'ab=1', 'b=a', `a=${'x'.repeat(5000)}`]) assert.equal(read(text), undefined, text)
  assert.equal(read(`${'&'.repeat(MAX_FORM_FIELDS - 1)}a=1`), '1')
  assert.equal(read(`${'&'.repeat(MAX_FORM_FIELDS)}a=1`), undefined)
})

describe('a large body of', () => {
  const secret = 'a secret of the test'
  const NOW = 1_700_000_000
  const hex = (text: string) => createHmac('sha256', secret).update(text).digest('hex')
  const signed = { timestamp: String(NOW), token: 'abc', signature: hex(`${NOW}abc`) }
  const filler = 'x'.repeat(9 * MIB)
  const judge = async (provider: string, body: string, headers: Record<string, string> = {}) =>
    compileWebhookVerification({ provider, secret }, { now: () => NOW * 1000 }).request?.(
      request({ method: 'POST', body, headers }),
    )

  /** The longest text that `work` parses or decodes as a form at once. */
  const longestRead = async (work: () => Promise<unknown>): Promise<number> => {
    const parsing = mock.method(JSON, 'parse')
    const decoding = mock.method(Buffer.prototype, 'toString')
    await work()
    const lengths = [
      ...parsing.mock.calls.map(({ arguments: [text] }) => text.length),
      ...decoding.mock.calls.map((call: { readonly result?: string }) => call.result?.length ?? 0),
    ]
    mock.restoreAll()
    return Math.max(0, ...lengths)
  }

  for (const [what, provider, body, headers] of [
    ['Mailgun as JSON', 'mailgun', JSON.stringify({ 'event-data': filler, signature: signed })],
    ['Mailgun as a form', 'mailgun', `body-plain=${filler}&${new URLSearchParams(signed).toString()}`],
    ['Linear', 'linear', `{"data":"${filler}","webhookTimestamp":${NOW}000}`, 'Linear-Signature'],
    ['Xero', 'xero', `{"events":["${filler}"]}`, 'x-xero-signature'],
  ] as const) {
    test(`${what} is verified without being parsed`, async () => {
      const digest = createHmac('sha256', secret).update(body)
      const given = headers ? { [headers]: digest.digest(provider === 'xero' ? 'base64' : 'hex') } : {}
      assert.ok((await longestRead(async () => assert.equal(await judge(provider, body, given), undefined))) < 10_000)
    })
  }

  test('Mailgun from anybody is refused without being parsed', async () => {
    for (const body of [
      `[${'[],'.repeat(MIB)}0]`,
      `{"signature":${'['.repeat(MIB)}`,
      '"\\'.repeat(MIB),
      `a=${filler}`,
    ]) {
      const read = await longestRead(async () =>
        assert.deepEqual(await judge('mailgun', body), { refuse: 'WEBHOOK_REFUSED' }),
      )
      assert.ok(read < 10_000)
    }
  })

  test('Twilio is refused when it is a form', async () => {
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      'X-Twilio-Signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=',
    }
    assert.deepEqual(await judge('twilio', `a=${filler}`, headers), { refuse: 'BODY_TOO_LARGE_TO_CHECK' })
  })

  test('others is hashed in pieces between other work', async () => {
    let turns = 0
    let isOver = false
    const other = (): void => {
      turns++
      if (!isOver) setImmediate(other)
    }
    other()
    const headers = { 'X-Hub-Signature-256': `sha256=${hex(filler)}` }
    let time = 0
    const clock = mock.method(performance, 'now', () => {
      time += 10
      return time
    })
    assert.equal(await judge('github', filler, headers), undefined)
    clock.mock.restore()
    isOver = true
    assert.ok(turns >= 9, `${turns} turns`)
  })
})

test('names that are not wanted are passed over unread, however many', async (t) => {
  const parse = t.mock.method(JSON, 'parse')
  const body = Buffer.from(`{${'"a":1,'.repeat(10_000)}"sign\\u0061ture":2,"other":3}`)
  assert.deepEqual(Object.fromEntries(await jsonFields(body, ['signature'])), { signature: 2 })
  assert.equal(parse.mock.callCount(), 2)
})
