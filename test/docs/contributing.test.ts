/** What CONTRIBUTING.md shows whole is written into a copy of the sources, compiled, and run. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { runCheck } from '../runner/checks.ts'
import { blocksOf } from './page.ts'

interface Part {
  readonly file: string
  /** What the line begins with that the last line of `text` follows, in a file that is there already. */
  readonly after: string | undefined
  readonly text: string
}

/** A block holds several files; a comment before each names it. */
function partsIn(text: string): Part[] {
  const [, ...parts] = text.split(/^\/\/ (src\/\S+\.ts)(?:, after `(.+)`)?\n/m)
  return Array.from({ length: parts.length / 3 }, (_, i) => {
    const [file = '', after, text = ''] = parts.slice(3 * i, 3 * i + 3)
    return { file, after, text: text.trimEnd() }
  })
}

/** The lines of `part` at their places: imports among the imports, the others after the line that it names. */
function added(source: string, part: Part): string {
  const lines = source.split('\n')
  const isImport = (line: string): boolean => line.startsWith('import ')
  const own = part.text.split('\n')
  const at = lines.findIndex((line) => part.after !== undefined && line.trimStart().startsWith(part.after))
  assert.ok(at >= 0, `CONTRIBUTING.md: ${part.file} has no line that begins with \`${part.after}\``)
  lines.splice(at + 1, 0, ...own.filter((line) => !isImport(line)))
  lines.splice(lines.findIndex(isImport), 0, ...own.filter(isImport))
  return lines.join('\n')
}

const root = mkdtempSync(join(tmpdir(), 'postern-contributing-'))
after(() => rmSync(root, { recursive: true }))

const parts = blocksOf('CONTRIBUTING.md').flatMap(({ language, text }) => (language === 'ts' ? partsIn(text) : []))

const load = (file: string) => import(pathToFileURL(join(root, file)).href)

before(() => {
  for (const folder of ['src', 'test/support', 'test/e2e/edges'])
    cpSync(folder, join(root, folder), { recursive: true })
  for (const file of ['package.json', 'tsconfig.json']) cpSync(file, join(root, file))
  for (const folder of ['node_modules', 'built']) symlinkSync(resolve(folder), join(root, folder), 'dir')
  for (const part of parts) {
    const path = join(root, part.file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, part.after === undefined ? part.text : added(readFileSync(path, 'utf8'), part))
  }
})

test('CONTRIBUTING.md shows a module, a resource and a command, each with its registry', () => {
  assert.deepEqual(
    parts.map(({ file }) => file.replace('src/', '')),
    [
      'modules/hello/form.ts',
      'modules/hello/traffic.ts',
      'modules/forms.ts',
      'modules/traffic.ts',
      'control-plane/resources/notes.ts',
      'control-plane/resources/index.ts',
      'cli/greet-command.ts',
      'cli/program.ts',
    ],
  )
})

/** Fails with all that the command printed. */
async function passes(command: string): Promise<void> {
  let printed = ''
  const print = (text: string): void => {
    printed += text
  }
  const { signal } = new AbortController()
  assert.ok(await runCheck(`cd ${root} && ${command}`, { signal, print }), printed)
}

test('all of them compile', async () => {
  // Not the registries: they import half of the sources, which takes ten times as long, and their new lines run below.
  const files = parts.filter((part) => part.after === undefined).map(({ file }) => file)
  writeFileSync(join(root, 'tsconfig.few.json'), JSON.stringify({ extends: './tsconfig.json', include: [], files }))
  await passes('tsc --project tsconfig.few.json')
})

test('the module has its place in both registries, and the example in its header holds', async () => {
  await passes(`${process.execPath} src/modules/traffic.test.ts`)
})

test('the module and the resource work in a server, and the command runs', async () => {
  const { World } = (await load('test/e2e/edges/world.ts')) as typeof import('../e2e/edges/world.ts')
  const world = await World.start()
  try {
    const { api } = world
    const hello = { text: 'grüß dich' }
    const backend = await world.toBackend('http_response', { body: 'hi' })
    const edge = await world.httpsEdge({ routes: [{ backend, hello }] })
    const greeting = (await world.ask(edge.name)).headers['x-hello']
    assert.equal(Buffer.from(String(greeting), 'latin1').toString(), hello.text)
    const module = `${edge.routes[0]?.path}/hello`
    assert.deepEqual(await api.get(module), { enabled: true, ...hello })
    await api.refused('ERR_INVALID_VALUE', 'PUT', module, { body: { text: 'a\r\nb: c' } })
    await api.refused('ERR_UNKNOWN_FIELD', 'PUT', module, { body: { ...hello, shout: true } })
    await api.put(module, { enabled: false, ...hello })
    await world.inForce()
    assert.equal((await world.ask(edge.name)).headers['x-hello'], undefined)

    const note = await api.create('/notes', { text: 'gone fishing' })
    assert.deepEqual((await api.get('/notes')).notes, [note])
    const { paths } = await api.get('/openapi.json')
    const routes = ['/notes', '/notes/{id}'].map((path) =>
      Object.keys(paths[path]).filter((key) => key !== 'parameters'),
    )
    assert.deepEqual(routes, [
      ['post', 'get'],
      ['get', 'patch', 'delete'],
    ])
  } finally {
    await world.stop()
  }

  const { posternHere } = (await load('test/support/postern-here.ts')) as typeof import('../support/postern-here.ts')
  assert.equal((await posternHere(['greet', '--name', 'Ada'])).out, 'Hello, Ada.\n')
  assert.match((await posternHere(['api', 'notes', '--help'])).out, /^Texts that people of the account leave/m)
})
