/**
 * `npm run container`: builds the image, runs the commands and both compose files of docs/docker.md unchanged, and
 * checks what that page promises.
 *
 * Needs Docker with Compose, a network, and the ports that the page publishes. Flags for the build can be added, such
 * as `--network=host` where containers have no network of their own: `npm run container -- --network=host`.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { blocksOf } from '../docs/page.ts'
import { until } from '../support/until.ts'
import { buildImage, IMAGE, mayOpen, must, run, startAgent, step, visit as visitAt } from './containers.ts'

const scratch = mkdtempSync(join(tmpdir(), 'postern-container-'))
const server = composeFolder('server')
const agent = composeFolder('agent')
try {
  await check()
  console.log('# the container does what docs/docker.md says')
} finally {
  for (const folder of [agent, server]) run('docker compose down --volumes --timeout 1', folder)
  rmSync(scratch, { recursive: true })
}

async function check(): Promise<void> {
  const page = blocksOf('docs/docker.md')
  const serverFile = page.find(({ about }) => about === 'compose.yaml')?.text ?? ''
  const [, start = '', copyCa = '', data = ''] = page
    .filter(({ language }) => language === 'sh')
    .map(({ text }) => text)

  step('the image is built, and does not run as root')
  buildImage()
  assert.equal(must(`docker inspect --format '{{.Config.User}}' ${IMAGE}`), '1000:1000\n')

  step('the health check fails without a server')
  const health = JSON.parse(must(`docker inspect --format '{{json .Config.Healthcheck.Test}}' ${IMAGE}`)) as string[]
  const [, program = '', ...args] = health
  assert.equal(run(`docker run --rm --entrypoint ${program} ${IMAGE} ${args.join(' ')}`).status, 1)

  step('the server starts, and is healthy')
  writeFileSync(join(server, 'compose.yaml'), serverFile)
  allowFewerFiles(serverFile)
  const log = must(start, server)
  const [, authtoken = ''] = /Agent authtoken +(\S+)/.exec(log) ?? []
  assert.notEqual(authtoken, '', 'the log of the first start shows an authtoken')
  assert.equal(healthOf(server), 'healthy')

  step('it is not root, has no capabilities, and can write to /data only')
  const inside = (command: string) => run(`docker compose exec -T postern sh -c '${command}'`, server)
  assert.equal(inside('id -u').stdout, '1000\n')
  assert.match(inside('cat /proc/1/status').stdout, /^CapEff:\t0+$[\s\S]*^CapBnd:\t0+$[\s\S]*^NoNewPrivs:\t1$/m)
  for (const path of ['/here', '/tmp/here', '/opt/postern/here']) {
    assert.match(inside(`touch ${path}`).stderr, /Read-only file system/, path)
  }
  assert.equal(inside('touch /data/here && rm /data/here').status, 0)
  assert.equal(must('docker compose port postern 7400', server), '127.0.0.1:7400\n', 'the API is for this machine only')

  step('commands run beside it, and its data can be copied')
  must(copyCa, server)
  must(data, server)
  assert.ok(existsSync(join(server, 'postern.backup')))
  const users = must('docker compose exec -T postern postern admin list-users', server)

  step('an agent in another container reaches it, and visitors reach the agent')
  const url = await startAgent(agent, { authtoken, caFile: join(server, 'ca.pem') })
  await until('visitors reach the agent', async () => (await visit(url)) === 'hello')

  step('a new container has the same data, and the agent comes back to its address')
  const container = must('docker compose ps --quiet postern', server)
  must('docker compose up --detach --wait --force-recreate', server)
  assert.notEqual(must('docker compose ps --quiet postern', server), container)
  assert.equal(must('docker compose exec -T postern postern admin list-users', server), users)
  await until('visitors reach it again', async () => (await visit(url)) === 'hello')

  step('both stop when told to')
  for (const [folder, name] of [
    [agent, 'tunnel'],
    [server, 'postern'],
  ] as const) {
    const id = must(`docker compose ps --quiet ${name}`, folder).trim()
    must(`docker compose stop ${name}`, folder)
    assert.equal(must(`docker inspect --format '{{.State.ExitCode}}' ${id}`), '0\n', `${name} was killed`)
  }
}

function allowFewerFiles(file: string): void {
  const { nofile } = parse(file).services.postern.ulimits as { nofile: number }
  if (mayOpen(nofile)) return
  writeFileSync(join(server, 'compose.override.yaml'), 'services: {postern: {ulimits: {nofile: 10000}}}\n')
}

function healthOf(folder: string): string {
  const id = must('docker compose ps --quiet postern', folder).trim()
  return must(`docker inspect --format '{{.State.Health.Status}}' ${id}`).trim()
}

function visit(url: string): Promise<string> {
  return visitAt(url, readFileSync(join(server, 'ca.pem')))
}

function composeFolder(name: string): string {
  const folder = join(scratch, `postern-check-${name}`)
  mkdirSync(folder)
  return folder
}
