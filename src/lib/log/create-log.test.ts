import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Secret } from '../secrets/secret.ts'
import { createLog, type LogOptions, lineWriter } from './create-log.ts'

const hidden = 'hunter2'

function logged(
  use: (log: ReturnType<typeof createLog>) => void,
  options: LogOptions & { isTTY?: boolean } = {},
): string {
  let text = ''
  const destination = { isTTY: options.isTTY ?? false, write: (line: string) => (text += line) }
  use(createLog({ level: 'trace', ...options, destination }))
  return text
}

const secretFields: Readonly<Record<string, object>> = {
  'an authorization header': { req: { headers: { authorization: `Bearer ${hidden}` } } },
  'a header in another case': { headers: { 'Proxy-Authorization': hidden, Cookie: hidden } },
  'a token': { token: hidden },
  'a secret': { secret: hidden },
  'a client_secret deep down': { a: { b: [{ c: { client_secret: hidden } }] } },
  'a private_key': { private_key: hidden },
  'a privateKey': { privateKey: [hidden] },
  'a password': { password: { value: hidden } },
  'an authtoken': { authtoken: hidden },
  'an API key': { apiKey: hidden, api_key: hidden },
  'a database URL': { databaseUrl: `postgres://u:${hidden}@h/db` },
  'a Secret': { anything: new Secret(hidden), list: [new Secret(hidden)] },
  'a map without prototype': { map: Object.assign(Object.create(null), { token: hidden }) },
  'an error with a token': { err: Object.assign(new Error('x'), { token: hidden, response: { password: hidden } }) },
  'what is too deep to look into': { a: { b: { c: { d: { e: { f: { g: { h: { token: hidden } } } } } } } } },
}
for (const [name, fields] of Object.entries(secretFields)) {
  for (const format of ['json', 'pretty'] as const) {
    test(`does not log ${name} (${format})`, () => {
      const text = logged((log) => log.info(fields, 'event'), { format })
      assert.ok(text.includes('event'))
      assert.ok(!text.includes(hidden), text)
    })
  }
}

test('masks the fields of a child logger and of its child', () => {
  const text = logged((log) =>
    log
      .child({ session: 'ts_1', token: hidden })
      .child({ a: { password: hidden } })
      .info('event'),
  )
  assert.ok(!text.includes(hidden), text)
  assert.ok(text.includes('ts_1'))
})

test('does not change the caller’s object', () => {
  const fields = { token: hidden, list: [{ secret: hidden }] }
  logged((log) => log.info(fields, 'event'))
  assert.deepEqual(fields, { token: hidden, list: [{ secret: hidden }] })
})

test('writes one JSON object a line, with time, level by name, and fields', () => {
  const line = logged((log) => log.warn({ edge: 'edgtcp_1', token: null }, 'edge refused'))
  const { time, ...rest } = JSON.parse(line)
  assert.match(time, /^\d{4}-\d\d-\d\dT/)
  assert.deepEqual(rest, { level: 'warn', edge: 'edgtcp_1', token: null, msg: 'edge refused' })
})

test('auto is pretty on a terminal and JSON elsewhere', () => {
  assert.ok(logged((log) => log.info('event'), { format: 'auto' }).startsWith('{'))
  assert.match(
    logged((log) => log.info('event'), { format: 'auto', isTTY: true }),
    /INFO/,
  )
})

test('pretty lines show fields as name=value and the stack of an error below', () => {
  const text = logged((log) => log.error({ edge: 'e1', list: [1], words: 'a b', err: new Error('broke') }, 'event'), {
    format: 'pretty',
  })
  assert.match(text, /^\d\d:\d\d:\d\d\.\d{3} ERROR event edge=e1 list=\[1\] words="a b"\n {4}Error: broke\n {4} +at /)
})

test('pretty lines contain no control characters from outside', () => {
  const text = logged((log) => log.info({ agent: 'x\u001b[2J\nfaked' }, 'event\nfaked'), { format: 'pretty' })
  assert.ok(!text.includes('\u001b'))
  assert.equal(text.split('\n').length, 2)
})

test('logs nothing below its level, and nothing at all when silent', () => {
  assert.equal(
    logged((log) => log.info('event'), { level: 'warn' }),
    '',
  )
  assert.equal(
    logged((log) => log.fatal('event'), { level: 'silent' }),
    '',
  )
})

test('a text in any field is cut at 2 KiB, with a mark at its end', () => {
  const long = 'x'.repeat(100_000)
  const line = logged((log) =>
    log.child({ agent: long }).info({ name: long, deep: { list: [long] }, err: new Error(long) }, 'event'),
  )
  const { agent, name, deep, err } = JSON.parse(line)
  for (const text of [agent, name, deep.list[0], err.message]) {
    assert.equal(Buffer.byteLength(text), 2048)
    assert.ok(text.endsWith('…'))
  }
  assert.match(err.stack, /^Error: x{2045}…\n +at /, 'the frames are still there')
})

test('a line with very many fields is shortened to its event and the beginning of the fields', () => {
  const names = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`name ${i}`, 'value']))
  const line = logged((log) => log.info(names, 'event'))
  assert.ok(line.length < 4096)
  const { level, msg, fields } = JSON.parse(line)
  assert.deepEqual([level, msg], ['info', 'event'])
  assert.match(fields, /^\{"name 0":"value".*…$/)
})

test('ready-made lines need not be events, however long they are', () => {
  let text = ''
  const log = createLog({ format: 'pretty', destination: { write: (line) => (text += line) } })
  lineWriter(log)(`{ not json ${'x'.repeat(40_000)}\nplain\n`)
  const [long = '', plain] = text.split('\n')
  assert.match(long, /^\{ not json x+…$/)
  assert.equal(plain, 'plain')
})
