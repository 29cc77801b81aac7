import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { caPem, edgeOf, httpService, Plane } from '../testing/test-http-plane.ts'

const run = promisify(execFile)

/** Sends a request with curl, which must be installed. */
async function curl(t: TestContext, plane: Plane, ...args: string[]): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-curl-'))
  t.after(() => rm(folder, { recursive: true }))
  const ca = join(folder, 'ca.pem')
  await writeFile(ca, caPem)
  const at = ['--resolve', `plane.test:${plane.httpsPort}:127.0.0.1`, `https://plane.test:${plane.httpsPort}/a?b`]
  const { stdout } = await run('curl', ['-sS', '--max-time', '10', '--cacert', ca, ...args, ...at], {
    encoding: 'buffer',
    maxBuffer: 16 * 1024 * 1024,
  })
  return stdout
}

const hasCurl = await run('curl', ['--version']).then(
  ({ stdout }) => stdout.includes('HTTP2'),
  () => false,
)

describe('curl', () => {
  for (const version of ['--http1.1', '--http2']) {
    test(`${version} asks, posts and reads heads`, async (t) => {
      if (!hasCurl) {
        t.skip('this curl does not speak HTTP/2')
        return
      }
      const service = await httpService(t, (request, response) => {
        if (request.method === 'POST') request.pipe(response)
        else response.writeHead(200, { 'x-seen': `${request.method} ${request.url}` }).end('hello')
      })
      const plane = await Plane.start(t, [{ ...edgeOf(service), names: ['plane.test'] }])
      assert.equal((await curl(t, plane, version)).toString(), 'hello')
      const head = (await curl(t, plane, version, '--head')).toString()
      assert.match(head, version === '--http2' ? /^HTTP\/2 200/ : /^HTTP\/1\.1 200/)
      assert.match(head, /x-seen: HEAD \/a\?b/i)
      const folder = await mkdtemp(join(tmpdir(), 'postern-curl-'))
      t.after(() => rm(folder, { recursive: true }))
      const upload = randomBytes(3_000_000)
      await writeFile(join(folder, 'upload'), upload)
      const echoed = await curl(t, plane, version, '--data-binary', `@${join(folder, 'upload')}`)
      assert.ok(echoed.equals(upload))
      const records = await plane.recorded(3)
      assert.deepEqual(
        records.map(({ isCut, status, version: spoken }) => [isCut, status, spoken]),
        Array.from({ length: 3 }, () => [false, 200, version === '--http2' ? '2' : '1.1']),
      )
    })
  }
})
