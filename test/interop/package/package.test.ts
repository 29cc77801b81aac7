/** The result of `npm pack`, installed into an empty folder as by users: server, agent, library, types and updates. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  createReadStream,
  globSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createGunzip } from 'node:zlib'
import { bringDependencies, unpack } from '../../../build/bundle.ts'
import { addRelease } from '../../../build/release.ts'
import { tarFiles } from '../../../src/agent/update/tar.ts'
import { ApiClient, type Json } from '../../support/api-client.ts'
import { type ServerProcess, serve, start } from '../../support/server-process.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import { canConfine, confined } from './confined.ts'
import { imageEnv, instruction } from './container-file.ts'
import { type Packed, packClone } from './packed.ts'

/** The most bytes of the unpacked package: more means that it contains something the program does not need. */
const MAX_BYTES = 7_500_000
const API_KEY = 'test_api_key_of_the_first_admin_0001'
const AUTHTOKEN = 'test_authtoken_of_the_first_agent_01'

let packed: Packed
/** The folder of the installation, empty at first. */
let home = ''
before(() => {
  packed = packClone()
  home = join(packed.scratch, 'empty')
  mkdirSync(home)
})
after(() => packed.remove())

describe('the package', () => {
  const files = new Map<string, Buffer>()
  before(async () => {
    const entries = tarFiles(createReadStream(packed.tarball).pipe(createGunzip()))
    for await (const { path, bytes } of entries) files.set(path, bytes)
  })
  const names = (pattern: RegExp): string[] => [...files.keys()].filter((name) => pattern.test(name))

  test('is small', () => {
    const bytes = [...files.values()].reduce((sum, each) => sum + each.length, 0)
    assert.ok(bytes < MAX_BYTES, `${bytes} bytes`)
  })

  test('has JavaScript with source maps, types, docs, units and both pages, and nothing else', () => {
    const known =
      /^(bin\/postern\.js|built\/(agent-)?page\/(index\.html|page\/[\w-]+\.(js|css|svg))|dist\/.*\.(js|js\.map|d\.ts)|docs\/.*|deploy\/.*|[A-Z]+(\.md)?|package\.json)$/
    assert.deepEqual(
      [...files.keys()].filter((name) => !known.test(name)),
      [],
    )
    assert.deepEqual(names(/(^|\/)(test|bench)\/|\.test\.|\/test-(?!command\.)[^/]*$/), [])
    for (const name of [
      'README.md',
      'LICENSE',
      'dist/main.js',
      'dist/agent/library.js',
      'dist/agent/library.d.ts',
      'built/page/index.html',
      'built/agent-page/index.html',
    ]) {
      assert.ok(files.has(name), name)
    }
  })

  test('has each source once, with its map', () => {
    const sources = globSync('src/**/*.ts').filter(
      (file) => !/^src\/page\/|\.d\.ts$|\.test\.ts$|\/testing\//.test(file),
    )
    assert.ok(sources.length > 500)
    const built = sources.map((file) => file.replace(/^src/, 'dist').replace(/\.ts$/, '.js'))
    assert.deepEqual(names(/^dist\/.*\.js$/).sort(), built.sort())
    assert.deepEqual(names(/\.js\.map$/).sort(), built.map((file) => `${file}.map`).sort())
  })

  test('has a manifest for people who install it', () => {
    const ours = JSON.parse(readFileSync('package.json', 'utf8'))
    const manifest = JSON.parse(String(files.get('package.json')))
    for (const field of ['name', 'version', 'license', 'type', 'bin', 'dependencies']) {
      assert.deepEqual(manifest[field], ours[field], field)
    }
    for (const field of ['private', 'devDependencies', 'optionalDependencies', 'allowScripts']) {
      assert.equal(field in manifest, false, field)
    }
    assert.deepEqual(manifest.engines, { node: '>=24' })
    const named = JSON.stringify([manifest.exports, manifest.bin]).match(/[\w./-]+\.(js|ts)(?=")/g) ?? []
    assert.equal(named.length, 3)
    for (const path of named) assert.ok(files.has(path.replace('./', '')), path)
  })

  test('leaves the repository as it was', () => {
    const isAsBefore = () =>
      readFileSync(join(packed.clone, 'package.json'), 'utf8') === readFileSync('package.json', 'utf8')
    const leftovers = () => globSync(['.package*', 'dist', '*.tgz'], { cwd: packed.clone })
    assert.deepEqual([isAsBefore(), leftovers()], [true, []])

    // As if packing had been interrupted, or another were running.
    copyFileSync('package.json', join(packed.clone, '.package.repository.json'))
    writeFileSync(join(packed.clone, 'package.json'), String(files.get('package.json')))
    const { status, stderr } = spawnSync('npm', ['pack'], { cwd: packed.clone, encoding: 'utf8' })
    assert.notEqual(status, 0)
    assert.match(stderr, /^Another `npm pack` is at work here\..* `npm run postpack`/m)
    assert.equal(isAsBefore(), false)
    assert.equal(spawnSync('npm', ['run', 'postpack'], { cwd: packed.clone }).status, 0)
    assert.deepEqual([isAsBefore(), leftovers()], [true, []])
  })
})

describe('installed into an empty folder', () => {
  let server: ServerProcess
  let launcher = ''
  let ca = ''
  const caFile = (): string => join(packed.scratch, 'data/ca.pem')
  const api = (): ApiClient => new ApiClient(server.url, API_KEY)

  before(async () => {
    writeFileSync(join(home, 'package.json'), '{"private":true,"type":"module"}')
    // Without install scripts: the dependencies are complete without them.
    const flags = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    execFileSync('npm', ['install', packed.tarball, ...flags], { cwd: home, stdio: ['ignore', 2, 2] })
    launcher = join(home, 'node_modules/.bin/postern')
    server = await serve({
      launcher,
      dataDir: join(packed.scratch, 'data'),
      flags: { 'drain-timeout': '1s' },
      env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN },
    })
    ca = readFileSync(caFile(), 'utf8')
  })
  after(async () => {
    if (server) assert.equal((await server.stop()).code, 0)
  })

  test('it brings no other Node', () => {
    assert.deepEqual(globSync('node_modules/{.bin/node,node-{linux,darwin,win}-*}', { cwd: home }), [])
  })

  test('npx runs it', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const said = execFileSync('npx', ['--no-install', 'postern', 'version'], { cwd: home, encoding: 'utf8' })
    assert.match(said, new RegExp(`^postern ${version.replaceAll('.', '\\.')} \\(Node v2[4-9]\\.`))
  })

  test('the server answers, and does heavy work on its threads', async () => {
    const { id, hostports } = await api().create('/edges/https', { hostports: ['shop.example.com:443'] })
    assert.deepEqual(hostports, ['shop.example.com:443'])
    const explained = await api().send('POST', '/policy/explain', {
      body: { edge_id: id, request: { method: 'GET', url: 'https://shop.example.com/' } },
    })
    assert.equal(explained.status, 200, explained.text)
    const made = await api().create('/ssh_certificate_authorities', { private_key_type: 'rsa', key_size: 2048 })
    assert.match(made.public_key, /^ssh-rsa /)
  })

  test('the agent serves visitors', async (t) => {
    const { address } = await httpUpstream(t, (_, response) => response.end('from the agent'))
    const agent = start(
      ['http', address, '--server', server.agents, '--ca', caFile(), '--domain', 'agent.example.com'],
      { launcher, env: { POSTERN_AUTHTOKEN: AUTHTOKEN } },
    )
    t.after(() => agent.child.kill('SIGKILL'))
    await agent.says(/agent\.example\.com/)
    await agent.says(/inspector online/)
    const [inspector = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(agent.out()) ?? []
    assert.match(await (await fetch(inspector)).text(), /<div id="page">/)
    const port = server.https.split(':').at(-1)
    assert.equal((await visit(`https://agent.example.com:${port}`, { ca })).text, 'from the agent')
    agent.child.kill('SIGINT')
    assert.equal((await agent.ended).code, 0)
  })

  for (const [kind, file, importing] of [
    ['import', 'app.mjs', "import { listen } from 'postern'"],
    ['require', 'app.cjs', "const { listen } = require('postern')"],
  ] as const) {
    test(`the library serves visitors, by ${kind}`, async (t) => {
      const options = { server: server.agents, ca: caFile(), authtoken: AUTHTOKEN, domain: `${kind}.example.com` }
      writeFileSync(
        join(home, file),
        `${importing}
         const answer = (connection) => connection.once('data', () => connection.end('HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nhello'))
         listen(answer, ${JSON.stringify(options)}).then((tunnel) => {
           console.log('online', tunnel.url)
           process.once('SIGTERM', () => tunnel.close())
         })`,
      )
      const program = start([], { launcher: join(home, file) })
      t.after(() => program.child.kill('SIGKILL'))
      await program.says(/^online/m)
      const [, url = ''] = /^online (\S+)/m.exec(program.out()) ?? []
      assert.equal((await visit(url, { ca })).text, 'hello')
      program.child.kill('SIGTERM')
      const { code, err } = await program.ended
      assert.deepEqual([code, err], [0, ''])
    })
  }

  test('its types resolve in a separate project, under strict checks', () => {
    const files = {
      'right.ts': `import { connect, forward, listen, AgentFault, type OpenTunnel } from 'postern'
        const tunnel: OpenTunnel = await forward({ addr: 3000, authtoken: 'x', basic_auth: ['a:b'] })
        await listen((connection, visitor) => { connection.end(visitor.address) })
        const connection = await connect({ onEvent: (event) => event.type === 'online' && event.region.length })
        await connection.forward({ addr: 22, proto: 'tcp' })
        export const fault: string = new AgentFault('refused', tunnel.url).code`,
      'wrong.ts': `import { forward } from 'postern'\nawait forward({ addr: true })`,
    }
    const compilerOptions = { module: 'nodenext', target: 'es2024', strict: true, noEmit: true }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(files) }))
    const compiler = join(process.cwd(), 'node_modules/.bin/tsc')
    const { stdout } = spawnSync(compiler, ['--pretty', 'false'], { cwd: home, encoding: 'utf8' })
    assert.match(stdout, /^wrong\.ts\(2,\d+\): error TS2322: Type 'boolean'.*\n$/)
  })

  describe('with its dependencies bundled', () => {
    let bundled = ''
    let manifest: Json
    let version = ''
    before(async () => {
      bundled = join(packed.scratch, 'package')
      await unpack(packed.tarball, bundled)
      const path = join(bundled, 'package.json')
      manifest = JSON.parse(readFileSync(path, 'utf8'))
      version = manifest.version.replace(/\d+$/, (patch: string) => Number(patch) + 1)
      writeFileSync(path, JSON.stringify({ ...manifest, version }))
      bringDependencies(bundled, 'package-lock.json')
    })

    test('an agent updates itself to a signed archive of the next version, and runs it', async (t) => {
      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const releases = join(packed.scratch, 'releases')
      assert.equal(addRelease(packed.scratch, releases, privateKey), version)
      const file = join(packed.scratch, 'agent.yml')
      const update = { source: releases, public_key: publicKey.export({ type: 'spki', format: 'pem' }) }
      const tunnels = { web: { addr: 1, domain: 'updated.example.com' } }
      const config = { server: server.agents, ca: caFile(), authtoken: AUTHTOKEN, metadata: 'updated', update, tunnels }
      writeFileSync(file, JSON.stringify(config))
      const env = { XDG_DATA_HOME: join(packed.scratch, 'share') }
      const agent = start(['start', '--config', file, '--log-format', 'json'], { launcher, env })
      t.after(() => agent.child.kill('SIGKILL'))
      await agent.says(/"tunnel online"/)
      const session = async (): Promise<Json> => {
        const { tunnel_sessions } = await api().get('/tunnel_sessions')
        return tunnel_sessions.find((each: Json) => each.metadata === 'updated')
      }
      const { id, agent_version } = await session()
      assert.equal(agent_version, manifest.version)
      const tell = async (command: string) => (await api().send('POST', `/tunnel_sessions/${id}/${command}`)).status
      assert.equal(await tell('update'), 204)
      await agent.says(new RegExp(`"version":"${version}"`))
      assert.equal(await tell('restart'), 204)
      const updated = await until('the agent is back', async () => {
        const found = await session()
        return found !== undefined && found.id !== id && found
      })
      assert.equal(updated.agent_version, version)
    })

    test('the server runs as in its container: read-only, as a user without privileges', async (t) => {
      const folder = join(packed.scratch, 'volume')
      const [uid = 0, gid = 0] = instruction('USER').split(':').map(Number)
      mkdirSync(folder, { mode: 0o700 })
      chmodSync(packed.scratch, 0o755)
      const bin = join(bundled, 'bin/postern.js')
      if (process.getuid?.() === 0) chownSync(folder, uid, gid)
      if (!canConfine({ folder, uid, gid }, bin)) return t.skip('programs cannot be confined on this machine')

      const listeners = ['AGENT', 'METRICS', 'SSH', 'HTTPS', 'HTTP'].map((listener) => [
        `POSTERN_${listener}_LISTEN`,
        '127.0.0.1:0',
      ])
      const moved = {
        POSTERN_DATA_DIR: folder,
        XDG_CACHE_HOME: join(folder, '.cache'),
        POSTERN_API_LISTEN: '127.0.0.1:0',
      }
      const env = { ...imageEnv, ...moved, ...Object.fromEntries(listeners), PATH: process.env.PATH }
      const args = JSON.parse(instruction('CMD')) as string[]
      const child = spawn(...confined({ folder, uid, gid }, [process.execPath, bin, ...args]), { env })
      t.after(() => child.kill('SIGKILL'))
      let printed = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += text))
      const closed = once(child, 'close')
      const api = await until('the server listens', () => /^Listening: API http:\/\/(\S+),/m.exec(printed)?.[1])
      const check = join(bundled, 'deploy/docker/healthy.js')
      const healthy = () => spawnSync(process.execPath, [check], { env: { POSTERN_API_LISTEN: api } }).status
      assert.equal(healthy(), 0)
      child.kill('SIGTERM')
      assert.deepEqual(await closed, [0, null], printed)
      assert.equal(healthy(), 1)
      assert.notEqual(globSync('.cache/postern/compiled/*/*', { cwd: folder }).length, 0)
    })
  })
})
