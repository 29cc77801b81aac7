import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { autoWorkers } from './auto-workers.ts'
import { hostNodeName, machineAddress } from './own-address.ts'
import { readSettings, type Settings } from './read-settings.ts'
import { configReference } from './reference.ts'
import { SettingsError } from './settings-error.ts'
import { envName, fileKey, settings } from './settings-table.ts'

const POSTGRES = 'postgres://postern@db.example.com/postern'
const DNS_KEY = 'hmac-sha512:postern:c2VjcmV0IG9mIHRoZSBuYW1lIHNlcnZlcg=='

const root = mkdtempSync(join(tmpdir(), 'postern-config-'))
after(() => rmSync(root, { recursive: true }))

interface Source {
  readonly flags?: Record<string, string>
  readonly env?: Record<string, string>
  /** Content of postern.yml. */
  readonly file?: string
}

function read({ flags = {}, env = {}, file }: Source = {}): Settings {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  if (file !== undefined) writeFileSync(join(cwd, 'postern.yml'), file)
  return readSettings({ flags, env, cwd })
}

function problemsOf(source: Source): readonly string[] {
  try {
    read(source)
  } catch (error) {
    assert.ok(error instanceof SettingsError, String(error))
    return error.problems
  }
  assert.fail('the settings were accepted')
}

test('every setting has its default when nothing is given', () => {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  assert.deepEqual(readSettings({ env: {}, cwd }), {
    dataDir: join(cwd, 'data'),
    databaseUrl: `sqlite:${join(cwd, 'data/postern.db')}`,
    keyFile: join(cwd, 'data/secret.key'),
    apiListen: { host: '127.0.0.1', port: 7400 },
    apiUrl: null,
    apiRateLimit: 0,
    metricsListen: { host: '127.0.0.1', port: 7401 },
    agentListen: { host: '0.0.0.0', port: 7443 },
    agentNames: [],
    agentAddress: null,
    clusterListen: null,
    clusterAddress: null,
    nodeName: hostNodeName(),
    sshListen: { host: '0.0.0.0', port: 2222 },
    tlsMinVersion: '1.2',
    httpsListen: { host: '0.0.0.0', port: 8443 },
    publicHttpsPort: 8443,
    httpListen: { host: '0.0.0.0', port: 8080 },
    publicHttpPort: 8080,
    trustedProxies: [],
    outboundAllow: [],
    maxConnections: 100_000,
    maxConnectionsPerSource: 0,
    maxRequestsPerSource: 0,
    maxHandshakes: 0,
    maxHandshakesPerSource: 0,
    maxHeaderBytes: 65_536,
    maxHeaders: 100,
    headerTimeoutMs: 15_000,
    idleTimeoutMs: 300_000,
    ngrokErrorHeader: true,
    tcpListen: '0.0.0.0',
    tcpPorts: { from: 20000, to: 20999 },
    domain: 'localhost',
    region: 'local',
    sharedLimits: false,
    bodyMemory: 64 * 1024 * 1024,
    exchangeMemory: 64 * 1024 * 1024,
    workers: autoWorkers(),
    drainTimeoutMs: 30_000,
    stopDelayMs: 0,
    logLevel: 'info',
    logFormat: 'auto',
    certificateDir: null,
    apiTls: false,
    agentCertificate: 'own',
    verifyDomains: false,
    dnsServers: [],
    acmeDirectory: '',
    acmeEmail: '',
    acmeCa: null,
    acmeEabKeyId: '',
    acmeDnsCommand: null,
    acmeDnsServer: null,
    acmeDnsKey: null,
    acmeEabKey: null,
    acmeOrdersPerHour: 60,
    acmeEndpointsPerWeek: 20,
    bootstrap: { apiKey: null, authtoken: null },
  })
})

test('a flag wins over a variable, a variable over the file, the file over the default', () => {
  const flags = { region: 'flag' }
  const env = { POSTERN_REGION: 'env' }
  const file = 'region: file'
  assert.equal(read({ flags, env, file }).region, 'flag')
  assert.equal(read({ env, file }).region, 'env')
  assert.equal(read({ file }).region, 'file')
  assert.equal(read().region, 'local')
})

for (const { name, example, envOnly, parse } of settings) {
  test(`${name} takes its own example from every source it has`, () => {
    // Settings of several nodes are refused with SQLite.
    const database = name === 'database-url' ? {} : { POSTERN_DATABASE_URL: POSTGRES }
    parse(example)
    read({ env: { ...database, [envName(name)]: example } })
    if (envOnly) return
    read({ flags: { [name]: example }, env: database })
    read({ file: `${fileKey(name)}: ${example}`, env: database })
  })
}

test('a DNS server has its usual port, and a key as nsupdate takes it', () => {
  const env = { POSTERN_ACME_DNS_KEY: DNS_KEY }
  const { acmeDnsServer, acmeDnsKey } = read({ flags: { 'acme-dns-server': '2001:db8::53' }, env })
  assert.deepEqual(acmeDnsServer, { host: '2001:db8::53', port: 53 })
  assert.deepEqual([acmeDnsKey?.algorithm, acmeDnsKey?.name], ['hmac-sha512', 'postern'])
  const other = read({
    flags: { 'acme-dns-server': 'ns1.example.com:5353' },
    env: { POSTERN_ACME_DNS_KEY: DNS_KEY.slice(12) },
  })
  assert.deepEqual(other.acmeDnsServer, { host: 'ns1.example.com', port: 5353 })
  assert.equal(other.acmeDnsKey?.algorithm, 'hmac-sha256')
})

const badDns: readonly [what: string, sources: Parameters<typeof read>[0], message: RegExp][] = [
  ['that is a URL', { flags: { 'acme-dns-server': 'https://ns1.example.com' } }, /must be an address and a port/],
  ['on port 0', { flags: { 'acme-dns-server': 'ns1.example.com:0' } }, /that others can reach/],
  ['with a weak algorithm', { env: { POSTERN_ACME_DNS_KEY: `hmac-md5:postern:${'A'.repeat(24)}` } }, /hmac-sha256/],
  ['with a key that has no name', { env: { POSTERN_ACME_DNS_KEY: 'A'.repeat(24) } }, /the name of the key/],
  ['with a secret that is none', { env: { POSTERN_ACME_DNS_KEY: 'postern:hunter2' } }, /a secret in base64/],
]
for (const [what, sources, message] of badDns) {
  test(`a DNS server ${what} is refused, and no secret is repeated`, () => {
    assert.throws(
      () => read(sources),
      (error: Error) => message.test(error.message) && !/hunter2|AAAA/.test(error.message),
    )
  })
}

test('the settings are frozen all the way down', () => {
  const settings = read({ env: { POSTERN_BOOTSTRAP_API_KEY: 'a'.repeat(32) } })
  for (const each of [settings, settings.apiListen, settings.tcpPorts, settings.bootstrap])
    assert.ok(Object.isFrozen(each))
})

test('defaults that depend on other settings follow them', () => {
  const settings = read({ flags: { 'data-dir': '/srv/postern', 'https-listen': '[::]:443' } })
  assert.equal(settings.databaseUrl, 'sqlite:/srv/postern/postern.db')
  assert.equal(settings.keyFile, '/srv/postern/secret.key')
  assert.equal(settings.publicHttpsPort, 443)
})

const clusters: readonly [what: string, flags: Record<string, string>, cluster: Partial<Settings>][] = [
  [
    'on PostgreSQL, at the address of the machine',
    {},
    {
      clusterListen: { host: '0.0.0.0', port: 7444 },
      clusterAddress: { host: machineAddress(), port: 7444 },
      agentAddress: { host: machineAddress(), port: 7443 },
    },
  ],
  [
    'at the address that it listens on, with the port that the system chooses',
    { 'cluster-listen': '[::1]:0', 'agent-listen': '127.0.0.1:0' },
    {
      clusterListen: { host: '::1', port: 0 },
      clusterAddress: { host: '::1', port: 0 },
      agentAddress: { host: '127.0.0.1', port: 0 },
    },
  ],
  [
    'at the address that is given for it',
    { 'cluster-address': 'node-1.internal:444', node: 'node_1.a-b' },
    {
      clusterAddress: { host: 'node-1.internal', port: 444 },
      agentAddress: { host: 'node-1.internal', port: 7443 },
      nodeName: 'node_1.a-b',
    },
  ],
  [
    'apart from the address that is given for agents',
    { 'cluster-listen': '10.0.0.5:7444', 'agent-address': 'n1.example.com:443' },
    { clusterAddress: { host: '10.0.0.5', port: 7444 }, agentAddress: { host: 'n1.example.com', port: 443 } },
  ],
  [
    'nowhere when it is set to be on its own',
    { 'cluster-listen': 'off', 'cluster-address': '10.0.0.5:7444', 'agent-address': 'n1.example.com:443' },
    { clusterListen: null, clusterAddress: null, agentAddress: null },
  ],
]
for (const [what, flags, cluster] of clusters) {
  test(`other nodes reach this one ${what}`, () => {
    const settings = read({ flags: { 'database-url': POSTGRES, ...flags } })
    for (const [field, value] of Object.entries(cluster)) {
      assert.deepEqual(settings[field as keyof Settings], value, field)
    }
  })
}

test('a node on SQLite is on its own, and accepts `cluster-listen` `off`', () => {
  assert.equal(read({ flags: { 'cluster-listen': 'off' } }).clusterListen, null)
})

const accepted: readonly [name: string, text: string, field: keyof Settings, value: unknown][] = [
  ['api-listen', '[::1]:0', 'apiListen', { host: '::1', port: 0 }],
  ['api-listen', 'localhost:65535', 'apiListen', { host: 'localhost', port: 65535 }],
  ['api-url', 'https://api.example.com/base/', 'apiUrl', 'https://api.example.com/base'],
  ['database-url', 'sqlite:/tmp/x.db', 'databaseUrl', 'sqlite:/tmp/x.db'],
  ['database-url', 'sqlite::memory:', 'databaseUrl', 'sqlite::memory:'],
  ['database-url', 'postgresql:///db?host=/run/pg', 'databaseUrl', 'postgresql:///db?host=/run/pg'],
  [
    'outbound-allow',
    '10.0.0.0/8, 127.0.0.1:9000,[::1]:9000,10.0.0.0/8:443,[fd00::/8]:443,ID.example.com:8443,2001:db8::/32',
    'outboundAllow',
    [
      { network: '10.0.0.0/8' },
      { network: '127.0.0.1/32', port: 9000 },
      { network: '::1/128', port: 9000 },
      { network: '10.0.0.0/8', port: 443 },
      { network: 'fd00::/8', port: 443 },
      { name: 'id.example.com', port: 8443 },
      { network: '2001:db8::/32' },
    ],
  ],
  ['tcp-ports', '5000', 'tcpPorts', { from: 5000, to: 5000 }],
  ['domain', 'Tunnels.Bücher.example.', 'domain', 'tunnels.xn--bcher-kva.example'],
  ['drain-timeout', '0s', 'drainTimeoutMs', 0],
  ['drain-timeout', '1500ms', 'drainTimeoutMs', 1500],
  ['drain-timeout', '24h', 'drainTimeoutMs', 86_400_000],
  ['stop-delay', '5s', 'stopDelayMs', 5000],
  ['body-memory', '512KiB', 'bodyMemory', 512 * 1024],
  ['body-memory', '64GiB', 'bodyMemory', 64 * 1024 ** 3],
  ['exchange-memory', '1MiB', 'exchangeMemory', 1024 * 1024],
  ['ngrok-error-header', 'on', 'ngrokErrorHeader', true],
  ['ngrok-error-header', 'off', 'ngrokErrorHeader', false],
  ['shared-limits', 'on', 'sharedLimits', true],
  ['log-level', 'silent', 'logLevel', 'silent'],
]
for (const [name, text, field, value] of accepted) {
  test(`${name} takes ${text}`, () => assert.deepEqual(read({ flags: { [name]: text } })[field], value))
}

const malformed: Readonly<Record<string, readonly string[]>> = {
  'data-dir': ['', 'a\0b', '~/data', '~'],
  'database-url': ['mysql://x', 'sqlite:', 'postgres:db', '/var/x.db', 'postgres://h:port/x'],
  'key-file': ['', '~/key'],
  'api-listen': ['7400', ':7400', '127.0.0.1', '127.0.0.1:', '::1:7400', '[::1]', '[x]:1', '010.0.0.1:1', '1.2:80'],
  'metrics-listen': ['h:65536', 'h:-1', 'h:01', 'http://h:1', 'a b:1', '*:80'],
  'https-listen': ['h:x', 'h:1:2'],
  'api-url': ['api.example.com', 'ftp://x', 'http://u:p@x', 'http://x?q', 'http://x#f'],
  'api-rate-limit': ['-1', '1.5', 'off', '', '9999999999'],
  'max-header-bytes': ['8191', '131073', '64KiB', ''],
  'max-headers': ['19', '1001', 'many'],
  'header-timeout': ['999ms', '6m', '15'],
  'idle-timeout': ['0s', '25h', 'never'],
  'tls-min-version': ['1.1', '1', 'TLSv1.2'],
  'max-connections': ['-1', 'unlimited'],
  'public-https-port': ['0', '65536', '443/tcp', ' 443'],
  'outbound-allow': [
    '10.0.0.1',
    'id.example.com',
    '[id.example.com]:1',
    '10.0.0.1/8:443',
    '127.0.0.1:0',
    '127.1:80',
    '::1:80',
  ],
  'tcp-ports': ['0-10', '10-5', '1-65536', 'a-b', '1-2-3', '20000-', '-5'],
  domain: ['', 'a..b', 'http://x', 'x:80', '10.0.0.1', '-a.example', 'a b', `${'a'.repeat(64)}.example`],
  region: ['', 'EU', 'a_b', '-x', 'a'.repeat(33)],
  'drain-timeout': ['30', '30 s', '-1s', '1.5s', '25h', '1d', 's'],
  'cluster-listen': ['on', 'none', '7444', '', '0.0.0.0:65536'],
  'cluster-address': ['10.0.0.5', '10.0.0.5:0', ':7444'],
  'agent-address': ['n1.example.com', 'n1.example.com:0', 'https://n1.example.com'],
  node: ['', 'a b', 'a/b', 'Bücher', 'a'.repeat(64)],
  'shared-limits': ['true', '3', ''],
  'ngrok-error-header': ['true', 'ON', 'no', ''],
  'log-level': ['verbose', 'INFO', ''],
  'log-format': ['text', ''],
}
for (const [name, texts] of Object.entries(malformed)) {
  for (const text of texts) {
    test(`${name} refuses ${JSON.stringify(text)}, naming itself, its source and an example`, () => {
      const example = settings.find((each) => each.name === name)?.example ?? ''
      const [problem = '', ...more] = problemsOf({ flags: { [name]: text } })
      assert.deepEqual(more, [])
      assert.ok(problem.startsWith(`\`${name}\` (--${name}) must be `), problem)
      assert.ok(problem.endsWith(`, for example \`${example}\``), problem)
      assert.ok(!problem.includes('\n'))
    })
  }
}

const refused: readonly [name: string, source: Source, problems: readonly RegExp[]][] = [
  ['a bad variable', { env: { POSTERN_REGION: 'EU' } }, [/^`region` \(POSTERN_REGION\) must be/]],
  ['a bad value in the file', { file: '# x\nregion: EU' }, [/^`region` \(postern\.yml line 2\) must be/]],
  ['an unknown variable', { env: { POSTERN_DATADIR: 'x' } }, [/`POSTERN_DATADIR` is not .* `POSTERN_DATA_DIR`\?$/]],
  ['a wholly unknown variable', { env: { POSTERN_COLOUR_OF_DOOR: 'x' } }, [/not a known setting; see `postern serve/]],
  ['an unknown key', { file: 'data_dri: x' }, [/^`data_dri` \(postern\.yml line 1\) is not .* `data_dir`\?$/]],
  ['a key spelled as a flag', { file: 'data-dir: x' }, [/`data-dir` .* did you mean `data_dir`\?$/]],
  ['an unknown flag', { flags: { 'data-dri': 'x' } }, [/^`--data-dri` is not .* `--data-dir`\?$/]],
  [
    'a duplicate key',
    { file: 'region: a\ndomain: b\nregion: c' },
    [/^postern\.yml line 3 sets a key for the second time/],
  ],
  ['a nested map', { file: 'api:\n  listen: x' }, [/^`api` \(postern\.yml line 1\) must be one plain value/]],
  ['a list', { file: 'region: [a, b]' }, [/^`region` \(postern\.yml line 1\) must be one plain value/]],
  ['an alias', { file: 'region: &r a\ndomain: *r' }, [/^`domain` \(postern\.yml line 2\) must be one plain value/]],
  ['a merge key', { file: '<<: x' }, [/^`<<` .* is not a known setting/]],
  ['a key without value', { file: 'region:' }, [/^`region` \(postern\.yml line 1\) has no value/]],
  ['a file that is no map', { file: '- a' }, [/^postern\.yml must be a map/]],
  ['broken YAML', { file: 'region: "a' }, [/^postern\.yml line 1 is not valid YAML: /]],
  ['two documents', { file: 'region: a\n---\nregion: b' }, [/is not valid YAML/]],
  [
    'a named file that is not there',
    { flags: { config: 'nowhere.yml' } },
    [/nowhere\.yml cannot be read: there is no/],
  ],
  [
    'other nodes beside SQLite',
    { env: { POSTERN_CLUSTER_LISTEN: '0.0.0.0:7444' } },
    [/^`cluster-listen` \(POSTERN_CLUSTER_LISTEN\) needs a `database-url` of PostgreSQL/],
  ],
  ['a folder as file', { env: { POSTERN_CONFIG: '.' } }, [/cannot be read: it is a folder/]],
  ['a secret in the file', { file: 'bootstrap_api_key: x' }, [/environment only: set POSTERN_BOOTSTRAP_API_KEY$/]],
  ['a secret as flag', { flags: { 'bootstrap-authtoken': 'x' } }, [/only: set POSTERN_BOOTSTRAP_AUTHTOKEN$/]],
  [
    'everything at once',
    { flags: { region: 'EU' }, env: { POSTERN_X: 'x', POSTERN_DOMAIN: 'a..b' }, file: 'reigon: x' },
    [/`reigon`/, /`POSTERN_X`/, /`domain` \(POSTERN_DOMAIN\)/, /`region` \(--region\)/],
  ],
]
for (const [name, source, expected] of refused) {
  test(`refuses ${name}`, () => {
    const problems = problemsOf(source)
    assert.equal(problems.length, expected.length, problems.join('\n'))
    for (const pattern of expected)
      assert.ok(
        problems.some((each) => pattern.test(each)),
        `${pattern}: ${problems.join()}`,
      )
  })
}

const secrets: readonly [name: string, value: string][] = [
  ['too short', 'hunter2_hunter2'],
  ['31 characters', 'x'.repeat(31)],
  ['other characters', `${'hunter2'.repeat(6)}-!`],
]
for (const variable of ['POSTERN_BOOTSTRAP_API_KEY', 'POSTERN_BOOTSTRAP_AUTHTOKEN']) {
  for (const [name, value] of secrets) {
    test(`${variable} refuses ${name} without repeating it`, () => {
      const [problem = ''] = problemsOf({ env: { [variable]: value } })
      assert.ok(problem.includes(variable), problem)
      assert.ok(!problem.includes(value), problem)
    })
  }
}

test('a preset token is held as a secret', () => {
  const token = 'Preset_0123456789_abcdefghijklmnop'
  const { bootstrap } = read({ env: { POSTERN_BOOTSTRAP_API_KEY: token, POSTERN_BOOTSTRAP_AUTHTOKEN: 'z'.repeat(32) } })
  assert.equal(bootstrap.apiKey?.reveal(), token)
  assert.ok(!JSON.stringify(bootstrap).includes(token))
})

test('broken YAML is reported without the text of the file', () => {
  const problems = problemsOf({ file: 'database_url: postgres://u:hunter2@h/db\n] hunter2: "x' })
  assert.ok(!problems.join().includes('hunter2'), problems.join())
})

test('empty variables, foreign variables and those of other commands are ignored', () => {
  read({ env: { POSTERN_REGION: '', POSTERN_UNKNOWN: '', PATH: 'x', POSTERN_API_KEY: 'x' } })
  // Secrets of agents on the same machine.
  read({ env: { POSTERN_OAUTH_CLIENT_SECRET: 'x', POSTERN_OIDC_CLIENT_SECRET: 'x' } })
})

test('the variables that Kubernetes sets for a service called postern are ignored', () => {
  const env = {
    POSTERN_SERVICE_HOST: '10.0.0.1',
    POSTERN_SERVICE_PORT: '7400',
    POSTERN_SERVICE_PORT_API: '7400',
    POSTERN_PORT: 'tcp://10.0.0.1:7400',
    POSTERN_PORT_7400_TCP: 'tcp://10.0.0.1:7400',
    POSTERN_PORT_7400_TCP_PROTO: 'tcp',
    POSTERN_API_SERVICE_HOST: '10.0.0.1',
  }
  read({ env })
})

test('an empty file and a file of comments set nothing', () => {
  assert.equal(read({ file: '' }).region, 'local')
  assert.equal(read({ file: '# region: x\n' }).region, 'local')
})

test('numbers in the file keep their text', () => {
  assert.equal(read({ file: 'region: 007\npublic_https_port: 443' }).region, '007')
})

test('--config names another file, and wins over POSTERN_CONFIG', () => {
  writeFileSync(join(root, 'a.yml'), 'region: a')
  writeFileSync(join(root, 'b.yml'), 'region: b')
  const env = { POSTERN_CONFIG: 'b.yml' }
  assert.equal(readSettings({ flags: { config: 'a.yml' }, env, cwd: root }).region, 'a')
  assert.equal(readSettings({ env, cwd: root }).region, 'b')
})

test('the example file of the reference page is accepted', () => {
  const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(configReference()) ?? []
  assert.equal(read({ file: yaml }).domain, 'tunnels.example.com')
})
