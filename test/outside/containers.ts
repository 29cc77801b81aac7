/** What the checks of containers share: the image, commands of Docker, and a visitor on this machine. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { blocksOf } from '../docs/page.ts'
import { until } from '../support/until.ts'

export const IMAGE = 'postern'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Builds the image as docs/docker.md says. Flags of this process are passed on, such as `--network=host`. */
export function buildImage(): void {
  const [build] = blocksOf('docs/docker.md').filter(({ language }) => language === 'sh')
  must((build?.text ?? '').replace('docker build', ['docker build', ...process.argv.slice(2)].join(' ')), root)
}

export function step(what: string): void {
  console.log(`- ${what}`)
}

/** Runs a command to its end and returns its output; throws when it fails. */
export function must(command: string, cwd: string = root): string {
  const { status, stdout, stderr } = run(command, cwd)
  if (status !== 0) throw new Error(`${command.trim()} failed with ${status}:\n${stdout}${stderr}`)
  return stdout
}

export function run(command: string, cwd: string = root) {
  return spawnSync('sh', ['-euc', command], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** A daemon that may not raise limits cannot give a container more open files than it has itself. */
export function mayOpen(nofile: number): boolean {
  if (run(`docker run --rm --ulimit nofile=${nofile} --entrypoint true ${IMAGE}`).status === 0) return true
  console.log(`# this Docker may not open ${nofile} files, so containers get fewer`)
  return false
}

/** Starts the agent of docs/docker.md in an empty folder; resolves with the URL of its service, which says `hello`. */
export async function startAgent(
  folder: string,
  { authtoken, caFile }: { readonly authtoken: string; readonly caFile: string },
): Promise<string> {
  const page = blocksOf('docs/docker.md')
  const file = page.find(({ about }) => about === 'agent.compose.yaml')?.text ?? ''
  const start = page.filter(({ language }) => language === 'sh').at(-1)?.text ?? ''
  writeFileSync(join(folder, 'compose.yaml'), file)
  writeFileSync(join(folder, 'compose.override.yaml'), stringify(standIns(file)))
  writeFileSync(join(folder, '.env'), `POSTERN_AUTHTOKEN=${authtoken}\n`)
  copyFileSync(caFile, join(folder, 'ca.pem'))
  must(start, folder)
  return until('the tunnel is online', () => /url=(https:\S+)/.exec(must('docker compose logs tunnel', folder))?.[1])
}

/** What the page leaves to its reader: the service, which is not nginx here, and the name of the server. */
function standIns(file: string): unknown {
  const { command } = parse(file).services.tunnel as { command: string }
  const [, host = ''] = /--server (\S+):/.exec(command) ?? []
  const serve = 'require("http").createServer((_, response) => response.end("hello")).listen(80)'
  return {
    services: {
      web: {
        image: IMAGE,
        user: '0:0',
        entrypoint: ['node', '-e', serve],
        command: [],
        healthcheck: { disable: true },
      },
      tunnel: { extra_hosts: [`${host}:host-gateway`] },
    },
  }
}

/** What a visitor on this machine gets, or why the address cannot be reached. */
export function visit(url: string, ca: Buffer): Promise<string> {
  const { hostname } = new URL(url)
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', servername: hostname, ca, headers: { host: hostname }, agent: false })
    request.on('error', (error) => resolve(String(error)))
    request.on('response', (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      response.on('close', () => resolve(body))
    })
  })
}
