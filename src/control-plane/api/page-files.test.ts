import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import Fastify from 'fastify'
import { sendFrontPage } from './front-page.ts'
import { readPageFiles } from './page-files.ts'

test('when the dashboard was not built, a browser is shown how to build it', async (t) => {
  assert.equal(await readPageFiles(join(tmpdir(), 'no-such-folder')), undefined)
  const app = Fastify()
  t.after(() => app.close())
  app.get('/', (_, reply) => sendFrontPage(reply))
  const { statusCode, headers, body } = await app.inject('/')
  assert.equal(statusCode, 200)
  assert.match(String(headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-/)
  assert.match(body, /management API of a Postern server/)
  assert.match(body, /<code>npm run page<\/code> builds it/)
})

test('files are sent compressed, and those named by their content are cached for good', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-page-files-'))
  t.after(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'page'))
  writeFileSync(join(folder, 'index.html'), '<!doctype html>')
  writeFileSync(join(folder, 'page', 'index-1.js'), 'let a = 1\n'.repeat(1000))
  writeFileSync(join(folder, 'page', 'notes.txt'), 'not ours')
  const files = await readPageFiles(folder)
  const app = Fastify()
  t.after(() => app.close())
  app.get('/:file', async (request, reply) => {
    const { file } = request.params as { readonly file: string }
    return (await files?.send(request, reply, file)) ?? reply.code(404).send()
  })
  const script = await app.inject({ url: '/index-1.js', headers: { 'accept-encoding': 'br, gzip' } })
  assert.equal(script.headers['content-encoding'], 'br')
  assert.match(String(script.headers['cache-control']), /max-age=31536000, immutable/)
  assert.ok(script.rawPayload.length < 1000)
  const index = await app.inject('/index.html')
  assert.deepEqual([index.body, index.headers['cache-control']], ['<!doctype html>', 'no-cache'])
  assert.match(String(index.headers.vary), /accept,.*authorization/)
  const { etag } = index.headers
  const again = await app.inject({ url: '/index.html', headers: { 'if-none-match': String(etag) } })
  assert.equal(again.statusCode, 304)
  for (const file of ['notes.txt', 'none.js', '..%2findex.html']) {
    assert.equal((await app.inject(`/${file}`)).statusCode, 404, file)
  }
})
