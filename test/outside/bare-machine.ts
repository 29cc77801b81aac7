/**
 * `npm run bare-machine`: runs the commands of README unchanged, one by one, on a machine that has only Node 24,
 * until a visitor has reached the address.
 *
 * With Docker that machine is a container of `node:24-slim`. Flags for `docker run` can be added, such as
 * `--network=host` where containers have no network of their own: `npm run bare-machine -- --network=host`. Without
 * Docker it is a fresh clone, an empty home, no variables, and only Node, npm and a shell on the path; the usual ports
 * of Postern must be free then. Packages come from the registry, so it needs a network, and a minute or two.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { blocksOf } from '../docs/page.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const IMAGE = 'node:24-slim'
const SECTION = '## A public address in five minutes\n'
const READY = /^Listening: |tunnel online|^up$/m

/** How long a program may take to become ready, in milliseconds. */
const START_MS = 60_000

/** The caller's variables that say how to reach the network. */
const NETWORK = /^(npm_config_|(https?|no)_proxy$|NODE_EXTRA_CA_CERTS$|SSL_CERT_)/i

if (process.argv[2] === '--inside') await follow()
else prepare()

function prepare(): void {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bare-'))
  try {
    const clone = join(folder, 'postern')
    must('git', ['clone', '--quiet', root, clone])
    const hasDocker = spawnSync('docker', ['info'], { stdio: 'ignore' }).status === 0
    const status = hasDocker ? inContainer(clone) : inFolder(folder, clone)
    if (status !== 0) throw new Error('README does not reach a working address')
    console.log('# README reaches a working address')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function inContainer(clone: string): number | null {
  console.log(`# in a container of ${IMAGE}`)
  const inside =
    'cp -r /from /home/node/postern && cd /home/node/postern && exec node test/outside/bare-machine.ts --inside'
  const mount = ['-v', `${clone}:/from:ro`]
  const args = [
    'run',
    '--rm',
    '--init',
    '--user',
    'node',
    ...mount,
    ...process.argv.slice(2),
    IMAGE,
    'sh',
    '-c',
    inside,
  ]
  return spawnSync('docker', args, { stdio: 'inherit' }).status
}

function inFolder(folder: string, clone: string): number | null {
  console.log('# there is no Docker here: in a fresh clone with an empty home')
  const [home, bin] = [join(folder, 'home'), join(folder, 'bin')]
  for (const each of [home, bin]) mkdirSync(each)
  symlinkSync(process.execPath, join(bin, 'node'))
  for (const name of ['sh', 'curl']) {
    const path = found(name)
    if (path !== undefined) symlinkSync(path, join(bin, name))
  }
  // The npm on this machine may be for another Node.
  const npm = dirname(realpathSync(found('npm') ?? 'npm'))
  for (const name of ['npm', 'npx']) script(join(bin, name), `exec node '${join(npm, `${name}-cli.js`)}' "$@"`)
  const network = Object.entries(process.env).filter(
    ([name]) => NETWORK.test(name) && !name.startsWith('npm_config_prefix'),
  )
  const env = { ...Object.fromEntries(network), HOME: home, PATH: bin }
  return spawnSync('node', ['test/outside/bare-machine.ts', '--inside'], { cwd: clone, env, stdio: 'inherit' }).status
}

/** Follows the commands of README, in the working folder. */
async function follow(): Promise<void> {
  const page = readFileSync('README.md', 'utf8')
  const begin = page.indexOf(SECTION)
  if (begin < 0) throw new Error(`README has no section ${SECTION}`)
  const section = page.slice(begin, page.indexOf('\n## ', begin + 1))
  if (found('curl') === undefined) standInForCurl()
  const running: number[] = []
  let authtoken = ''
  let last = ''
  try {
    for (const { language, use, about, text } of blocksOf('README.md', section)) {
      const isOurs = use === 'run' || use === 'stays' || (use === 'not-run' && about.includes('bare-machine'))
      if (language !== 'sh' || !isOurs) continue
      console.log(`$ ${text.trim()}`)
      const command = text.replace('--authtoken …', () => `--authtoken ${authtoken}`)
      if (use === 'stays') {
        const { pid, printed } = await untilReady(command)
        running.push(pid)
        authtoken ||= /^ {2}Agent authtoken +(\S+)$/m.exec(printed)?.[1] ?? ''
      } else {
        last = must('sh', ['-euc', command])
        console.log(last)
      }
    }
    if (last.trim() !== 'hello') throw new Error('the visitor did not get the answer of the service')
  } finally {
    for (const pid of running) process.kill(-pid, 'SIGKILL')
  }
}

/** Starts a program in a process group of its own; resolves once it is ready. */
function untilReady(command: string): Promise<{ pid: number; printed: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-euc', command], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    let printed = ''
    const fail = (why: string): void => reject(new Error(`${why}:\n${printed}`))
    const timer = setTimeout(fail, START_MS, 'the program did not become ready')
    child.once('exit', () => fail('the program ended'))
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text
        if (!READY.test(printed) || child.pid === undefined) return
        clearTimeout(timer)
        resolve({ pid: child.pid, printed })
      })
    }
    child.unref()
  })
}

/** Visits like a browser where there is no `curl`: names below `localhost` are this machine. */
function standInForCurl(): void {
  const bin = mkdtempSync(join(homedir(), 'visitor-'))
  const visit = `require('https').get(process.argv[3], { ca: require('fs').readFileSync(process.argv[2]), lookup: (_name, options, done) => options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4) }, (answer) => answer.pipe(process.stdout))`
  writeFileSync(join(bin, 'visit.cjs'), visit)
  script(join(bin, 'curl'), `[ "$1" = --cacert ] || exit 2\nexec node '${join(bin, 'visit.cjs')}' "$2" "$3"`)
  process.env.PATH = `${process.env.PATH}${delimiter}${bin}`
}

function script(path: string, lines: string): void {
  writeFileSync(path, `#!/bin/sh\n${lines}\n`)
  chmodSync(path, 0o755)
}

/** The path of a program. */
function found(name: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return existsSync(path)
  } catch {
    return false
  }
}

/** Runs a program to its end and returns its output; throws when it fails. */
function must(name: string, args: readonly string[]): string {
  const { status, stdout, error } = spawnSync(name, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (status !== 0) throw error ?? new Error(`${name} failed with ${status}`)
  return stdout
}
