import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import type { KeptHeader, SeenExchange, WholeExchange } from '../../model/exchange.ts'
import { curlOf } from './exchange-curl.ts'
import { harOf } from './exchange-har.ts'

const run = promisify(execFile)

const exchange: SeenExchange = {
  id: 'ex_1',
  startedAt: 1000,
  durationMs: 5,
  timings: { modules: 1, dial: undefined, wait: 2, receive: 2 },
  method: 'POST',
  host: 'a.test',
  path: '/a?b=c&d=%20e',
  isPathCut: false,
  status: 200,
  fault: undefined,
  bytesIn: 3,
  bytesOut: 4,
  version: '1.1',
  scheme: 'https',
  ip: '192.0.2.1',
  edgeId: 'edghts_1',
  routeId: undefined,
  ownerId: undefined,
  target: undefined,
  sessionId: undefined,
  decided: {},
  isCut: false,
  captureId: undefined,
  replayOf: undefined,
}

function whole(headers: readonly KeptHeader[], content: string, encoding: 'text' | 'base64' = 'text'): WholeExchange {
  const size = Buffer.from(content, encoding === 'text' ? 'utf8' : 'base64').length
  const body = { size, kept: size, encoding, content }
  return { exchange: { ...exchange, bytesIn: size }, authority: 'a.test:8443', request: { headers, body } }
}

const shown = (name: string, value: string): KeptHeader => ({ name, value, isMasked: false })

/** What a shell passes to curl: its input and its arguments. */
async function givenBy(command: string): Promise<{ readonly input: string; readonly words: string[] }> {
  const script = `curl() { printf '%s\\0' "$@" >&2; case " $* " in *' @- '*) base64 ;; esac; }\n${command}`
  const { stdout, stderr } = await run('sh', ['-c', script], { encoding: 'utf8' })
  return { input: stdout.trim(), words: stderr.split('\0').slice(0, -1) }
}

test('a command has all that is known, and notes what is not', () => {
  const headers = [shown('Host', 'a.test:8443'), shown('X-A', 'b'), { name: 'Cookie', value: '', isMasked: true }]
  assert.equal(
    curlOf(whole(headers, `it's`)),
    [
      '# masked: Cookie',
      'curl \\',
      '  --path-as-is --globoff \\',
      "  --request 'POST' \\",
      "  --header 'X-A: b' \\",
      "  --data-raw 'it'\\''s' \\",
      "  'https://a.test:8443/a?b=c&d=%20e'",
    ].join('\n'),
  )
  const bare = curlOf({ exchange })
  assert.match(
    bare,
    /^# headers were not kept\n# the body was not kept as a whole\ncurl [\s\S]* 'https:\/\/a\.test\/a\?/,
  )
})

test('whatever a request contains, a shell passes it to curl unchanged', async () => {
  const hostile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 50 }).map((text) => text.replaceAll('\0', '')),
    fc.constantFrom(
      "'; touch /tmp/owned; '",
      '$(id)',
      '`id`',
      '\\',
      "'\\''",
      '\n#',
      '!!',
      '-o/etc/passwd',
      '@/etc/passwd',
    ),
  )
  const printable = hostile.map((text) => text.replaceAll(/[^\t -~]/g, '?'))
  await fc.assert(
    fc.asyncProperty(hostile, printable, async (body, value) => {
      const text = Buffer.from(body).toString()
      const { words } = await givenBy(curlOf(whole([shown('X-A', value)], text)))
      const header = value === '' ? 'X-A;' : `X-A: ${value}`
      const sent = text === '' ? [] : ['--data-raw', text]
      const expected = ['--path-as-is', '--globoff', '--request', 'POST', '--header', header, ...sent]
      assert.deepEqual(words, [...expected, 'https://a.test:8443/a?b=c&d=%20e'])
    }),
    { numRuns: 60 },
  )
})

test('a binary body reaches curl as bytes', async () => {
  const bytes = Buffer.from([0xff, 0, 0x41, 0x27]).toString('base64')
  const { input, words } = await givenBy(curlOf(whole([], bytes, 'base64')))
  assert.deepEqual([input, words.slice(4)], [bytes, ['--data-binary', '@-', 'https://a.test:8443/a?b=c&d=%20e']])
})

test('a HAR document has what was kept, without masks', () => {
  const headers = [shown('Content-Type', 'text/plain'), { name: 'Cookie', value: '', isMasked: true }]
  const { entries } = harOf(whole(headers, 'abc')).log
  const [entry] = entries
  assert.deepEqual(entry?.request, {
    method: 'POST',
    url: 'https://a.test:8443/a?b=c&d=%20e',
    httpVersion: 'HTTP/1.1',
    cookies: [],
    headers: [{ name: 'Content-Type', value: 'text/plain' }],
    queryString: [
      { name: 'b', value: 'c' },
      { name: 'd', value: ' e' },
    ],
    postData: { mimeType: 'text/plain', text: 'abc' },
    headersSize: -1,
    bodySize: 3,
  })
  assert.deepEqual(entry?.timings, { blocked: 1, connect: -1, send: 0, wait: 2, receive: 2 })
  assert.deepEqual(entry?.response.content, { size: 4, mimeType: '' })
})
