import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { run } from './program.ts'
import { testTerminal } from './testing/test-terminal.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

async function postern(...args: string[]) {
  const terminal = testTerminal()
  const code = await run(args, terminal)
  return { code, ...terminal.printed }
}

const wrong: readonly [args: string[], says: RegExp][] = [
  [['serv'], /unknown command 'serv'; did you mean 'serve'\?/],
  [['serv', '--data-dir', 'x'], /unknown command 'serv'; did you mean 'serve'\?/],
  [['--hepl'], /unknown option '--hepl'; did you mean '--help'\?/],
  [['--verbose', 'serve'], /^error: unknown option '--verbose'; see `npx postern --help`\n$/],
  [['--config', 'x.yml', 'admin', 'list-users'], /unknown option '--config'; see/],
  [['udp', '53'], /UDP is not offered/],
  [['frobnicate'], /unknown command 'frobnicate'; see `npx postern --help`/],
  [['serve', '--data-dri', 'x'], /unknown option '--data-dri'\n\(Did you mean --data-dir\?\)/],
  [['serve', 'now'], /too many arguments/],
  [['serve', '--region', 'EU', '--domain', 'a..b'], /error: `domain` \(--domain\) .*\nerror: `region` \(--region\) /],
  [['admin', 'list-user'], /unknown command 'list-user'; did you mean 'list-users'\?/],
  [['admin', 'create-user'], /required option '--name <name>'/],
  [['admin', 'create-user', '--name', 'x', '--role', 'boss'], /Allowed choices are admin, member/],
  [['version', '--jsn'], /Did you mean --json\?/],
]
for (const [args, says] of wrong) {
  test(`postern ${args.join(' ')} is a usage error`, async () => {
    const { code, out, err } = await postern(...args)
    assert.match(err, says)
    assert.equal(out, '')
    assert.equal(code, 2)
  })
}

const helped: readonly string[][] = [
  [],
  ['serve'],
  ['api'],
  ['api', 'tcp-edges'],
  ['api', 'tcp-edges', 'create'],
  ['admin'],
  ['admin', 'create-user'],
  ['admin', 'create-key'],
  ['admin', 'list-users'],
  ['version'],
]
for (const args of helped) {
  test(`postern ${[...args, '--help'].join(' ')} shows usage and, at its ends, an example`, async () => {
    const { code, out } = await postern(...args, '--help')
    assert.match(out, /^Usage: postern/)
    if (args.length !== 2 || args[0] !== 'api') assert.match(out, /\nExamples?:\n {2}postern /)
    assert.equal(code, 0)
  })
}

test('`postern help` works like --help, also for a command', async () => {
  assert.deepEqual(await postern('help'), await postern('--help'))
  assert.deepEqual(await postern('help', 'admin', 'create-key'), await postern('admin', 'create-key', '--help'))
})

test('the help lists the commands for users and not the internal ones', async () => {
  const { out } = await postern()
  for (const name of ['serve', 'api', 'admin', 'version']) assert.match(out, new RegExp(`^ +${name} `, 'm'))
  assert.doesNotMatch(out, / docs /)
})

test('version prints the versions, also as JSON', async () => {
  assert.match((await postern('version')).out, /^postern \d+\.\d+\.\d+\S* \(Node v\d+\S+, \w+ \w+\)\n$/)
  assert.equal((await postern('--version')).out, (await postern('version')).out)
  const { version, node } = JSON.parse((await postern('version', '--json')).out)
  assert.match(version, /^\d+\.\d+\.\d+/)
  assert.equal(node, process.version)
})

const light: readonly string[][] = [
  ['--help'],
  ['version'],
  ['http', '--help'],
  ['start', '--help'],
  ['login', '--help'],
]
for (const args of light) {
  test(`postern ${args.join(' ')} loads commander and no other package`, async () => {
    const found = `import { registerHooks } from 'node:module'
      registerHooks({ load: (url, context, next) => (console.error('loaded', url), next(url, context)) })`
    const hook = `--import=data:text/javascript,${encodeURIComponent(found)}`
    const { stderr } = await promisify(execFile)(process.execPath, [hook, main, ...args])
    assert.match(stderr, /^loaded file:.*\/src\/cli\/program\.ts$/m)
    const packages = Array.from(stderr.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\//g), ([, name]) => name)
    assert.deepEqual([...new Set(packages)], ['commander'])
  })
}

test('a reader that closes the pipe ends the program quietly', async () => {
  const child = spawn(process.execPath, [main, 'serve', '--help'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let found = ''
  child.stderr.on('data', (chunk) => {
    found += chunk
  })
  const [code] = await once(child, 'close')
  assert.equal(found, '')
  assert.equal(code, 0)
})
