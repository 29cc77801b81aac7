/** Which libraries the processes of a server load, and when: each start takes longer for what it loads. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ApiClient } from '../support/api-client.ts'
import { postern, type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'

const API_KEY = 'loaded_libraries_key_0123456789abcdef'
const folder = mkdtempSync(join(tmpdir(), 'postern-loaded-'))
const list = join(folder, 'loaded')

type Command = 'serve' | 'run-control' | 'run-worker' | 'admin'

/** Our own files that an admin command may load: some 90 today. The whole server has seven times as many. */
const ADMIN_FILES_AT_MOST = 200

const hook = join(folder, 'hook.mjs')
let server: ServerProcess
before(async () => {
  writeFileSync(
    hook,
    `import { appendFileSync } from 'node:fs'
     import { registerHooks } from 'node:module'
     const note = (url) => appendFileSync(${JSON.stringify(list)}, process.argv[2] + ' ' + url + '\\n')
     registerHooks({ load: (url, context, next) => (note(url), next(url, context)) })`,
  )
  server = await serve({
    dataDir: join(folder, 'data'),
    env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY },
    flags: { workers: '1' },
    nodeFlags: [`--import=${hook}`],
  })
})
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The modules that a process has loaded: packages by name, and our own files as `src/…`. */
function loaded(command: Command): ReadonlySet<string> {
  const lines = readFileSync(list, 'utf8').split('\n')
  const urls = lines.filter((line) => line.startsWith(`${command} `))
  const names = urls.map((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/(src\/\S*)/.exec(url))
  return new Set(names.map((found) => found?.[1] ?? found?.[2] ?? ''))
}

const controlOnly = [
  'fastify',
  'kysely',
  '@prometheus-io/client',
  'src/control-plane/api/app.ts',
  'src/control-plane/store/store.ts',
]

const known: Readonly<
  Record<Exclude<Command, 'admin'>, { readonly has: readonly string[]; readonly lacks: readonly string[] }>
> = {
  serve: {
    has: ['commander', 'src/server/supervisor/supervisor.ts'],
    lacks: [
      ...controlOnly,
      're2js',
      'src/server/compose/open-data-plane.ts',
      'src/server/compose/open-control-plane.ts',
    ],
  },
  'run-control': {
    has: ['fastify', 'kysely', 'src/server/compose/open-management-api.ts'],
    lacks: ['src/server/compose/open-data-plane.ts', 'src/modules/traffic.ts', 'src/modules/policy/traffic.ts'],
  },
  'run-worker': {
    has: ['src/server/compose/open-data-plane.ts', 'src/modules/traffic.ts'],
    lacks: [...controlOnly, 'src/server/compose/open-control-plane.ts'],
  },
}

/** Loaded when first needed, or not at all. */
const later = [
  ...['typebox', 'ajv', '@bufbuild/cel', 'jose', 'openid-client', '@node-saml/node-saml', 'ssh2', 'acme-client'],
  ...[
    'pg',
    'yaml',
    '@scalar/fastify-api-reference',
    'src/control-plane/cluster/cluster.ts',
    'src/control-plane/acme/acme-authority.ts',
  ],
]

for (const [command, { has, lacks }] of Object.entries(known)) {
  test(`${command} loads what it needs, and not what only others need or nothing needs yet`, () => {
    // The keys of the table are commands.
    const names = loaded(command as Command)
    assert.deepEqual(
      has.filter((name) => !names.has(name)),
      [],
    )
    assert.deepEqual(
      [...lacks, ...later].filter((name) => names.has(name)),
      [],
    )
  })
}

test('an admin command loads the store and the users, and nothing of traffic, modules or policies', async () => {
  const place = ['--data-dir', join(folder, 'admin')]
  const { code, err } = await postern(['admin', 'list-users', ...place], { nodeFlags: [`--import=${hook}`] })
  assert.equal(code, 0, err)
  const ours = [...loaded('admin')].filter((name) => name.startsWith('src/'))
  assert.ok(ours.includes('src/server/compose/open-admin.ts'))
  assert.deepEqual(
    ours.filter((name) => /\/data-plane\/|\/modules\/(.*\/)?(form|forms|traffic)\.ts$|\/policy\/engine\//.test(name)),
    [],
  )
  assert.ok(ours.length <= ADMIN_FILES_AT_MOST, `${ours.length} files`)
})

test('what an edge needs is loaded when it is made, before its first visitor', async () => {
  const api = new ApiClient(server.url, API_KEY)
  await api.create('/edges/tls', {
    hostports: ['policy.localhost:443'],
    policy: { inbound: [{ actions: [{ type: 'deny' }] }] },
  })
  await until('the library of policies', () => loaded('run-worker').has('@bufbuild/cel'))
  assert.ok(!loaded('run-worker').has('openid-client'))
  const { id } = await api.create('/edges/https', { hostports: ['login.localhost:443'] })
  const oidc = { issuer: 'https://login.example.com', client_id: 'a', client_secret: 'b' }
  await api.create(`/edges/https/${id}/routes`, { match: '/', match_type: 'path_prefix', oidc })
  await until('the library of logins', () => loaded('run-worker').has('openid-client'))
})
