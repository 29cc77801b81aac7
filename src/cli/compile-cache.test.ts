import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = realpathSync(mkdtempSync(join(tmpdir(), 'postern-compiled-')))
after(() => rmSync(root, { recursive: true }))
const home = (): string => mkdtempSync(join(root, 'home-'))

const program = `
  const { keepCompiledCode } = await import(${JSON.stringify(new URL('./compile-cache.ts', import.meta.url).href)})
  keepCompiledCode()
  console.log((await import('node:module')).getCompileCacheDir() ?? 'none')`

/** Where a process with these variables caches its compiled code. */
async function keptAt(env: Record<string, string>, node: readonly string[] = []): Promise<string> {
  const args = [...node, '--input-type=module', '--eval', program]
  return (await run(process.execPath, args, { env })).stdout.trim()
}

const places: [name: string, env: (folder: string) => Record<string, string>, place: string][] = [
  ['the home', (HOME) => ({ HOME }), '.cache/postern/compiled'],
  ['the folder for caches', (folder) => ({ HOME: '/nowhere', XDG_CACHE_HOME: folder }), 'postern/compiled'],
  [
    'the folder that systemd made',
    (folder) => ({ HOME: '/nowhere', CACHE_DIRECTORY: `${folder}:/b` }),
    'postern/compiled',
  ],
]
for (const [name, env, place] of places) {
  test(`compiled code is kept in ${name}, readable only by this user`, async () => {
    const folder = home()
    assert.ok((await keptAt(env(folder))).startsWith(join(folder, place)))
  })
}

test('a folder that NODE_COMPILE_CACHE names is used', async () => {
  const folder = home()
  const found = { HOME: home(), NODE_COMPILE_CACHE: folder }
  assert.ok((await keptAt(found)).startsWith(folder))
  assert.deepEqual(globSync('.cache', { cwd: found.HOME }), [])
  assert.equal(await keptAt({ HOME: home(), NODE_DISABLE_COMPILE_CACHE: '1' }), 'none')
})

test('nothing is cached where other users may write, and a read-only folder does not prevent the start', async () => {
  const shared = home()
  mkdirSync(join(shared, 'postern/compiled'), { recursive: true })
  chmodSync(join(shared, 'postern/compiled'), 0o777)
  assert.equal(await keptAt({ HOME: '/nowhere', XDG_CACHE_HOME: shared }), 'none')

  const open = home()
  chmodSync(open, 0o777)
  assert.equal(await keptAt({ HOME: open }), 'none')
  assert.deepEqual(globSync('.cache', { cwd: open }), [])

  const file = join(home(), 'file')
  writeFileSync(file, '')
  for (const env of [{ HOME: file }, { HOME: '/nowhere' }, { HOME: '/', XDG_CACHE_HOME: '/proc/1' }]) {
    assert.equal(await keptAt(env), 'none')
  }
  assert.ok(!existsSync('/nowhere'))
})

test('the program caches its own code, and uses it at the next start', async () => {
  const folder = home()
  const env = { XDG_CACHE_HOME: folder, NODE_DEBUG_NATIVE: 'COMPILE_CACHE', PATH: process.env.PATH ?? '' }
  const start = async () =>
    (await run(process.execPath, ['bin/postern.js', 'version'], { env, maxBuffer: 2 ** 26 })).stderr
  const of = (log: string, outcome: string) => log.match(new RegExp(`code cache for ESM .* was ${outcome}`, 'g')) ?? []
  assert.deepEqual(of(await start(), 'accepted'), [])
  const again = await start()
  assert.ok(of(again, 'accepted').some((line) => line.includes('src/cli/program.ts')))
  assert.deepEqual(of(again, 'rejected'), [])
})
