import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../../test/support/tls-identity.ts'
import { type TestOwner, testInspector } from '../testing/test-inspector.ts'
import { readBuiltPage } from './built-page.ts'

let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})

async function builtFolder(owner: TestOwner): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-agent-page-'))
  owner.after(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'page'))
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>built</title>')
  await writeFile(join(folder, 'page', 'index-a1.js'), 'x')
  await writeFile(join(folder, 'page', 'notes.txt'), 'not a file of the page')
  return folder
}

test('the page is served at its address with its files below it, beside the API', async (t) => {
  const { ask } = await testInspector(t, identity, { page: await readBuiltPage(await builtFolder(t)) })
  const page = await ask('GET', '/')
  assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'])
  assert.match(page.text, /built/)
  const policy = String(page.headers['content-security-policy'])
  assert.match(policy, /default-src 'none'.*frame-ancestors 'none'.*trusted-types 'none'/)
  assert.doesNotMatch(policy, /unsafe|https?:|\*/)
  const script = await ask('GET', '/page/index-a1.js')
  assert.deepEqual([script.status, script.text], [200, 'x'])
  assert.match(String(script.headers['content-type']), /^text\/javascript/)
  for (const path of ['/page/notes.txt', '/page/..%2findex.html', '/page', '/index.html']) {
    assert.equal((await ask('GET', path)).status, 404, path)
  }
  assert.equal((await ask('POST', '/')).status, 405)
  assert.equal((await ask('GET', '/api/status')).status, 200)
})

test('its files are not served for a name that was pointed here (DNS rebinding)', async (t) => {
  const { ask } = await testInspector(t, identity, { page: await readBuiltPage(await builtFolder(t)) })
  for (const path of ['/', '/page/index-a1.js']) {
    assert.equal((await ask('GET', path, { headers: { host: 'evil.test' } })).status, 403, path)
  }
})

test('without a built page, there is a plain one', async () => {
  const page = await readBuiltPage(join(tmpdir(), 'postern-no-such-folder'))
  assert.match(String(page('/')?.bytes), /\/api\/tunnels/)
})
