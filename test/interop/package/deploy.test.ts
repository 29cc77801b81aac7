/** The container file, its page and the systemd units: what they name exists, and they are locked down as they say. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { after, describe, test } from 'node:test'
import { parse } from 'yaml'
import { readSettings } from '../../../src/server/config/read-settings.ts'
import { clientVariables, envName, settings } from '../../../src/server/config/settings-table.ts'
import { blocksOf } from '../../docs/page.ts'
import { imageEnv, instruction, stages } from './container-file.ts'

const scratch = mkdtempSync(join(tmpdir(), 'postern-deploy-'))
after(() => rmSync(scratch, { recursive: true }))

/** The port of each listener of the server, with these variables. */
function portsOf(env: Readonly<Record<string, string>>): Record<string, number> {
  const { apiListen, agentListen, httpListen, httpsListen, sshListen } = readSettings({ env, cwd: scratch, flags: {} })
  const all = { apiListen, agentListen, httpListen, httpsListen, sshListen }
  return Object.fromEntries(Object.entries(all).map(([name, { port }]) => [name, port]))
}

test('every variable that a file of deploy/ names is a setting', () => {
  const known = new Set([...settings.map(({ name }) => envName(name)), ...clientVariables])
  const files = globSync('deploy/**/*', { withFileTypes: true }).filter((each) => each.isFile())
  const named = files.flatMap(({ parentPath, name }) => [
    ...readFileSync(join(parentPath, name), 'utf8').matchAll(/POSTERN_[A-Z_]+/g),
  ])
  assert.ok(named.length > 20)
  assert.deepEqual(
    named.flatMap(([variable]) => (known.has(variable) ? [] : [variable])),
    [],
  )
})

describe('the container file', () => {
  test('runs as a user other than root, and keeps its data in a volume of that user', () => {
    assert.match(instruction('USER'), /^[1-9]\d*:[1-9]\d*$/)
    assert.equal(instruction('VOLUME'), imageEnv.POSTERN_DATA_DIR)
    assert.match(instruction('RUN'), /install -d -o node -g node -m 0700 \/data$/)
    assert.ok(imageEnv.XDG_CACHE_HOME?.startsWith(`${instruction('VOLUME')}/`))
  })

  test('names the ports that the server listens on', () => {
    const ports = Object.values(portsOf(imageEnv)).sort((a, b) => a - b)
    assert.deepEqual(instruction('EXPOSE').split(' ').map(Number), ports)
  })

  test('copies only files that exist and that the build context has', () => {
    const [hidden, ...given] = readFileSync('.dockerignore', 'utf8')
      .replaceAll(/^#.*\n/gm, '')
      .trim()
      .split('\n')
    assert.equal(hidden, '*')
    const isGiven = (file: string) => given.some((pattern) => matchesGlob(file, pattern.slice(1)))
    for (const pattern of given) assert.notEqual(globSync(pattern.slice(1)).length, 0, pattern)
    const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] }
    // Packing makes these from the sources.
    const made = ['built', 'dist']
    const packed = files.filter((name) => !name.startsWith('!'))
    for (const name of packed) assert.ok(made.includes(name) || isGiven(name), name)
    for (const secret of ['data', 'node_modules', '.git', 'release.key', '.env']) assert.ok(!isGiven(secret), secret)
    const copied = stages[0]
      ?.filter(({ name }) => name === 'COPY')
      .flatMap(({ value }) => value.split(' ').slice(0, -1))
    for (const file of copied ?? []) assert.ok(file === '.' || isGiven(file), file)
  })

  test('runs scripts that exist, and starts the server', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
    const runs = stages[0]?.filter(({ name }) => name === 'RUN').map(({ value }) => value)
    assert.deepEqual(runs, ['npm ci --ignore-scripts', 'npm run bundle -- /opt/postern'])
    assert.ok(scripts.bundle)
    assert.deepEqual(
      [instruction('COPY'), JSON.parse(instruction('ENTRYPOINT')), JSON.parse(instruction('CMD'))],
      ['--from=build /opt/postern /opt/postern', ['postern'], ['serve']],
    )
  })
})

describe('the health check', () => {
  const [, , command = ''] = instruction('HEALTHCHECK').match(/^(.*?) CMD (.*)$/) ?? []
  const [program, script = ''] = JSON.parse(command) as string[]
  const check = async (env: Record<string, string>): Promise<number | null> => {
    const file = script.replace('/opt/postern/', '')
    const [code] = await once(spawn(process.execPath, [file], { env, stdio: 'ignore' }), 'exit')
    return code
  }

  test('passes while the server answers, wherever it listens, and only then', async (t) => {
    assert.equal(program, 'node')
    let status = 200
    const asked: (string | undefined)[] = []
    const server = createServer((request, response) => {
      asked.push(request.url)
      response.writeHead(status).end()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo // it listens on a port
    for (const listen of [`0.0.0.0:${port}`, `127.0.0.1:${port}`, `localhost:${port}`]) {
      assert.equal(await check({ POSTERN_API_LISTEN: listen }), 0, listen)
    }
    assert.deepEqual(asked, ['/healthz', '/healthz', '/healthz'])
    status = 503
    assert.equal(await check({ POSTERN_API_LISTEN: `0.0.0.0:${port}` }), 1)
    assert.equal(await check({ POSTERN_API_LISTEN: '127.0.0.1:1' }), 1)
    assert.equal(await check({ POSTERN_API_LISTEN: 'nonsense' }), 1)
  })
})

describe('docs/docker.md', () => {
  const page = readFileSync('docs/docker.md', 'utf8')
  const [server, agent] = blocksOf('docs/docker.md', page)
    .filter(({ use }) => use === 'file')
    .map(({ text }) => parse(text))

  test('has a compose file whose ports are those of the server', () => {
    const { environment, ports, volumes } = server.services.postern
    const given = { ...imageEnv, ...environment }
    // Throws for an unknown setting.
    const listening = portsOf(given)
    const published = (ports as string[]).map((port) => port.split(':').slice(-2) as [string, string])
    const byInside = new Map(published.map(([outside, inside]) => [inside, outside]))
    for (const [name, port] of Object.entries(listening)) assert.ok(byInside.has(String(port)), name)
    assert.equal(byInside.get('8443'), given.POSTERN_PUBLIC_HTTPS_PORT)
    assert.equal(byInside.get('8080'), given.POSTERN_PUBLIC_HTTP_PORT)
    assert.equal(byInside.get(given.POSTERN_TCP_PORTS), given.POSTERN_TCP_PORTS)
    assert.ok(ports.includes('127.0.0.1:7400:7400'), 'the API is for this machine only')
    assert.deepEqual(volumes, [`data:${instruction('VOLUME')}`])
    assert.ok('data' in server.volumes)
  })

  test('has both containers locked down', () => {
    for (const { read_only, cap_drop, security_opt } of [server.services.postern, agent.services.tunnel]) {
      assert.deepEqual([read_only, cap_drop, security_opt], [true, ['ALL'], ['no-new-privileges:true']])
    }
  })

  test('has only postern commands that exist', () => {
    const said = [...page.matchAll(/^docker compose exec postern postern (.*)$/gm)].map(([, words = '']) => words)
    const all = [...said, agent.services.tunnel.command as string]
    assert.equal(all.length, 3)
    for (const words of all) {
      const args = words.split(' ').filter((word) => !/[/:]/.test(word))
      const { status, stdout } = spawnSync(process.execPath, ['bin/postern.js', ...args, '--help'], {
        encoding: 'utf8',
      })
      assert.equal(status, 0, words)
      for (const [flag] of words.matchAll(/--[a-z-]+/g)) assert.ok(stdout.includes(flag), `${words}: ${flag}`)
    }
  })
})

describe('the units of systemd', () => {
  const analyze = (args: readonly string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  const hasSystemd = analyze(['--version']).status === 0
  const options = { skip: hasSystemd ? false : 'no systemd-analyze on this machine' }

  test('name a page that is in the package, in both places where npm puts it', () => {
    for (const file of globSync('deploy/systemd/*')) {
      const [, addresses = ''] = /^Documentation=(.*)$/m.exec(readFileSync(file, 'utf8')) ?? []
      const pages = addresses.split(' ').map((address) => {
        const [, root, page = ''] = /^file:(.*)\/postern\/(docs\/.*)$/.exec(address) ?? []
        assert.ok(existsSync(page), `${file}: ${address}`)
        return [root, page]
      })
      assert.deepEqual(
        pages.map(([root]) => root),
        ['/usr/local/lib/node_modules', '/usr/lib/node_modules'],
      )
      assert.equal(new Set(pages.map(([, page]) => page)).size, 1, file)
    }
  })

  for (const [name, words, exposure] of [
    ['postern', 'serve', 20],
    ['postern-agent', 'start', 15],
  ] as const) {
    const text = readFileSync(`deploy/systemd/${name}.service`, 'utf8')

    test(`${name}.service runs a command that exists`, () => {
      const [, command = ''] = /^ExecStart=postern (\w+)/m.exec(text) ?? []
      assert.equal(command, words)
      const keys = [...text.matchAll(/^Environment=(POSTERN_\w+)=(.*)$/gm)].map(([, key = '', value = '']) => [
        key,
        value,
      ])
      readSettings({ env: Object.fromEntries(keys), cwd: scratch, flags: {} })
    })

    test(`${name}.service has no line that systemd does not know`, options, () => {
      // A program that exists, since ours is not installed here.
      const file = join(scratch, `${name}.service`)
      writeFileSync(file, text.replace(/^(Exec\w+)=postern /gm, '$1=/usr/bin/env postern '))
      const { status, stderr } = analyze(['verify', '--man=no', file])
      assert.deepEqual([status, stderr.split('\n').filter((line) => line.includes(name))], [0, []])
    })

    test(`${name}.service is as locked down as possible`, options, () => {
      const { status, stdout } = analyze([
        ...['security', '--offline=true', `--threshold=${exposure}`, '--no-pager'],
        `deploy/systemd/${name}.service`,
      ])
      assert.equal(status, 0, stdout)
    })
  }
})
