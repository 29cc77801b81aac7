import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Command } from 'commander'
import { type TlsIdentity, tlsIdentity } from '../../../test/support/tls-identity.ts'
import { TestServer } from '../../agent/testing/test-server.ts'
import { streamTypes } from '../../link/wire/stream-types.ts'
import { Failure } from '../command-failure.ts'
import { run } from '../program.ts'
import { type TestTerminal, testTerminal } from '../testing/test-terminal.ts'
import { loginCommand } from './login.ts'
import type { RunParts } from './run.ts'
import { startCommand } from './start.ts'
import { tunnelCommand } from './tunnel-command.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-agent-cli-'))
let identity: TlsIdentity
let testServer: TestServer
before(async () => {
  identity = await tlsIdentity()
  writeFileSync(join(root, 'ca.pem'), identity.ca)
  testServer = await TestServer.start(identity)
})
after(async () => {
  await testServer.close()
  rmSync(root, { recursive: true })
})

function here(env: Record<string, string> = {}): TestTerminal {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  return testTerminal({ cwd, env: { HOME: cwd, POSTERN_CA: join(root, 'ca.pem'), ...env } })
}

function doorEnv(): Record<string, string> {
  return { POSTERN_SERVER: `127.0.0.1:${testServer.port}`, POSTERN_AUTHTOKEN: 'token' }
}

/** A command that runs until the test ends it. */
function running(
  make: (terminal: TestTerminal, parts: Partial<RunParts>) => Command,
  args: string[],
  terminal = here(doorEnv()),
) {
  const signals = new EventEmitter()
  const exits: number[] = []
  const became: string[] = []
  const command = make(terminal, {
    signals,
    exit: (code) => void exits.push(code),
    become: (launcher) => void became.push(launcher),
    version: '1.2.3',
  })
  const before = testServer.sessions.length
  const done = command.exitOverride().parseAsync(args, { from: 'user' })
  const says = async (text: RegExp): Promise<void> => {
    while (!text.test(terminal.printed.out)) {
      await Promise.race([new Promise((resolve) => setImmediate(resolve)), done.then(() => assert.fail('it ended'))])
    }
  }
  return { signals, exits, became, terminal, done, says, session: () => testServer.session(before + 1) }
}

describe('postern http', () => {
  test('shows the address, forwards to the service, and ends cleanly on a signal', async () => {
    const service = createServer((_, response) => response.end('hello'))
    service.listen(0, '127.0.0.1')
    await once(service, 'listening')
    const { port } = service.address() as AddressInfo // it listens on a port
    const { says, session, signals, done, exits, terminal } = running(
      (...given) => tunnelCommand('http', ...given),
      [String(port), '--domain', 'app.example.com', '--basic-auth', 'ada:engine', '--cidr-allow', '10.0.0.0/8'],
    )
    await says(/tunnel online tunnel=http url=https:\/\/app\.example\.com forwards_to=http:\/\/localhost:\d+\n/)
    const { auth, binds, unbound, closed } = await session()
    assert.equal(auth.version, '1.2.3')
    assert.equal(auth.restartUnsupported, '')
    assert.match(auth.updateUnsupported ?? '', /^no source of updates is configured/)
    const [bind] = binds
    assert.equal(bind?.forwardsTo, `http://localhost:${port}`)
    assert.deepEqual(bind?.opts, {
      Domain: 'app.example.com',
      IPRestriction: { allow_cidrs: ['10.0.0.0/8'], deny_cidrs: [] },
      BasicAuth: { credentials: [{ username: 'ada', cleartext_password: 'engine' }] },
    })
    const visitor = testServer.visit(testServer.lastId, { proto: 'https' })
    visitor.end('GET / HTTP/1.1\r\nHost: app.example.com\r\nConnection: close\r\n\r\n')
    let answer = ''
    for await (const chunk of visitor) answer += chunk
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\nhello$/)
    signals.emit('SIGINT')
    await done
    assert.deepEqual(exits, [0])
    assert.deepEqual(unbound, [testServer.lastId])
    assert.equal(await closed, undefined, 'a farewell, not a broken connection')
    assert.doesNotMatch(terminal.printed.out, /connection opened|token/)
    service.close()
  })

  test('asks for a login, whose secret may come from the environment', async () => {
    const { says, session, signals, done, terminal } = running(
      (...given) => tunnelCommand('http', ...given),
      [
        ...[
          '3000',
          '--oidc',
          'https://id.test',
          '--oidc-client-id',
          'app',
          '--oidc-scope',
          'email',
          '--oidc-scope',
          'b',
        ],
        ...['--oidc-allow-email', 'ada@example.com', '--oidc-allow-domain', 'example.org', '--log-level', 'debug'],
      ],
      here({ ...doorEnv(), POSTERN_OIDC_CLIENT_SECRET: 'hush-hush', POSTERN_OAUTH_CLIENT_SECRET: 'not asked for' }),
    )
    await says(/tunnel online/)
    const { binds } = await session()
    assert.deepEqual(binds[0]?.opts, {
      OIDC: {
        issuer_url: 'https://id.test',
        client_id: 'app',
        client_secret: 'hush-hush',
        allow_emails: ['ada@example.com'],
        allow_domains: ['example.org'],
        scopes: ['email', 'b'],
      },
    })
    signals.emit('SIGINT')
    await done
    assert.doesNotMatch(terminal.printed.out + terminal.printed.err, /hush-hush/)
  })

  test('draws on a terminal, and restores it', async () => {
    const written: string[] = []
    const write = (text: string): void => void written.push(text)
    const keys = { hold() {}, release() {}, send() {}, onContinue: () => () => {} }
    const screen = { columns: 80, rows: 24, isBusy: false, write, onResize: () => () => {}, keys }
    const terminal = { ...here(doorEnv()), isTTY: true }
    const { signals, done, exits } = running(
      (given, parts) => tunnelCommand('http', given, { ...parts, screen: () => screen }),
      ['3000', '--domain', 'seen.example.com'],
      terminal,
    )
    while (!written.join('').includes('https://seen.example.com')) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(terminal.printed.out, '')
    signals.emit('SIGINT')
    await done
    assert.deepEqual(exits, [0])
    assert.equal(written.at(-1), '\x1b[?7h\x1b[?25h\x1b[?1049l')
  })

  test('asks for both schemes with one name', async () => {
    const { says, signals, done, session } = running(
      (...given) => tunnelCommand('http', ...given),
      ['3000', '--scheme', 'http', '--scheme', 'https', '--log-format', 'json', '--log-level', 'debug'],
    )
    await says(/"url":"https:\/\/random.*\n.*"url":"http:\/\/random/)
    const { binds } = await session()
    assert.deepEqual(
      binds.map(({ proto }) => proto),
      ['https', 'http'],
    )
    signals.emit('SIGTERM')
    await done
  })

  test('with labels asks for no address', async () => {
    const { says, signals, done, session } = running(
      (...given) => tunnelCommand('http', ...given),
      ['3000', '--label', 'app=shop', '--label', 'env=test'],
    )
    await says(/tunnel online tunnel=http labels=\{"app":"shop","env":"test"\}/)
    assert.deepEqual({ ...(await session()).labels[0]?.labels }, { app: 'shop', env: 'test' })
    signals.emit('SIGTERM')
    await done
  })

  test('ends with the reason of a refusal, and exit code 1', async () => {
    testServer.rules.bind = () => 'The name `app` is taken.\n\nERR_NGROK_334\n'
    const { done } = running((...given) => tunnelCommand('http', ...given), ['3000'])
    await assert.rejects(done, (error) => {
      assert.ok(error instanceof Failure)
      assert.equal(error.message, 'the server refused: The name `app` is taken. (ERR_NGROK_334)')
      return error.exitCode === 1
    })
    delete testServer.rules.bind
  })

  test('ends when the server refuses the authtoken', async () => {
    testServer.rules.auth = () => 'The authtoken is not known.\n\nERR_NGROK_107\n'
    const { done } = running((...given) => tunnelCommand('http', ...given), ['3000'])
    await assert.rejects(done, /^Failure: the server refused: The authtoken is not known\. \(ERR_NGROK_107\)$/)
    delete testServer.rules.auth
  })

  test('keeps trying an unreachable server, and says so', async () => {
    const terminal = here({ ...doorEnv(), POSTERN_SERVER: '127.0.0.1:1' })
    const { says, signals, done, exits } = running((...given) => tunnelCommand('http', ...given), ['3000'], terminal)
    await says(/WARN {2}not connected; retrying reason="nothing listens at 127\.0\.0\.1:1; /)
    signals.emit('SIGINT')
    await done
    assert.deepEqual(exits, [0])
  })

  test('a second signal ends at once', async () => {
    const { says, signals, done, exits } = running((...given) => tunnelCommand('http', ...given), ['3000'])
    await says(/tunnel online/)
    signals.emit('SIGINT')
    signals.emit('SIGINT')
    assert.deepEqual(exits, [1])
    await done
  })

  test('ends when the server stops its last tunnel', async () => {
    const { says, done, session } = running((...given) => tunnelCommand('http', ...given), ['3000'])
    await says(/tunnel online/)
    await session()
    testServer.stopTunnel(testServer.lastId, 'Over quota.')
    await assert.rejects(done, /the server stopped the last tunnel/)
  })
})

describe('a command of the server', () => {
  test('stop ends the agent with exit code 0', async () => {
    const { says, done, exits, session } = running((...given) => tunnelCommand('tcp', ...given), ['22'])
    await says(/tunnel online tunnel=tcp url=tcp:\/\/example\.com:\d+ forwards_to=localhost:22/)
    await session()
    assert.equal(await testServer.command(streamTypes.stop), '')
    await done
    assert.deepEqual(exits, [0])
  })

  test('restart runs the launcher in its place, once everything is closed', async () => {
    const { says, done, exits, became, session } = running((...given) => tunnelCommand('tls', ...given), ['443'])
    await says(/tunnel online tunnel=tls/)
    const { closed } = await session()
    assert.equal(await testServer.command(streamTypes.restart), '')
    await done
    assert.deepEqual(exits, [])
    assert.equal(await closed, undefined)
    assert.match(became.join(), /\/bin\/postern\.js$/)
  })

  const disabled: [name: string, line: string, says: RegExp][] = [
    ['update', 'update_checks: false', /^update checks are disabled/],
    ['update', '', /^no source of updates is configured/],
    ['restart', 'remote_management: false', /^remote management is disabled/],
    ['stop', 'remote_management: false', /^remote management is disabled/],
    ['update', 'remote_management: false', /^remote management is disabled/],
  ]
  for (const [name, line, says] of disabled) {
    test(`${name} is announced as unsupported with \`${line}\``, async () => {
      const terminal = here(doorEnv())
      writeFileSync(join(terminal.cwd, 'postern-agent.yml'), `${line}\n`)
      const agent = running((...given) => tunnelCommand('http', ...given), ['3000'], terminal)
      const { auth } = await agent.session()
      const reported = { restart: auth.restartUnsupported, stop: auth.stopUnsupported, update: auth.updateUnsupported }
      assert.match(reported[name as keyof typeof reported] ?? '', says) // the table names them
      agent.signals.emit('SIGINT')
      await agent.done
    })
  }
})

describe('postern start', () => {
  const file = `
tunnels:
  web: {addr: 3000, subdomain: web}
  ssh: {proto: tcp, addr: 22}
`
  const started = (args: string[], text = file) => {
    const terminal = here(doorEnv())
    writeFileSync(join(terminal.cwd, 'postern-agent.yml'), text)
    return running(startCommand, args, terminal)
  }

  for (const args of [[], ['--all'], ['ssh', 'web']]) {
    test(`${args.join(' ') || 'alone'} starts all tunnels on one session`, async () => {
      const { says, signals, done, session } = started(args)
      await says(/tunnel online[\s\S]*tunnel online/)
      assert.deepEqual((await session()).binds.map(({ name }) => name).toSorted(), ['ssh', 'web'])
      signals.emit('SIGINT')
      await done
    })
  }

  test('starts the named tunnels and no others', async () => {
    const { says, signals, done, session } = started(['ssh'])
    await says(/tunnel online/)
    assert.deepEqual(
      (await session()).binds.map(({ name }) => name),
      ['ssh'],
    )
    signals.emit('SIGINT')
    await done
  })

  test('starts the tunnels of an ngrok.yml, and prints which settings are ignored', async () => {
    const terminal = here(doorEnv())
    const text = `version: 3
agent:
  authtoken: one-of-ngrok
  region: eu
endpoints:
  - {name: shop, url: shop.example.com, description: the shop, upstream: {url: 3000}}
`
    writeFileSync(join(terminal.cwd, 'ngrok.yml'), text)
    const { says, signals, done, session } = running(startCommand, ['--config', 'ngrok.yml'], terminal)
    await says(/tunnel online tunnel=shop/)
    const { auth, binds } = await session()
    assert.equal(auth.authtoken.reveal(), 'token', 'that of the environment, not one of ngrok')
    assert.deepEqual(
      binds.map(({ name, description, opts }) => [name, description, opts]),
      [['shop', 'the shop', { Domain: 'shop.example.com' }]],
    )
    assert.equal(terminal.printed.err, 'ngrok.yml:4: `agent.region` is ignored: the region is that of your server\n')
    signals.emit('SIGINT')
    await done
  })

  test('prints line by line what is not supported in an ngrok.yml, before anything starts', async () => {
    const terminal = here(doorEnv())
    writeFileSync(
      join(terminal.cwd, 'ngrok.yml'),
      'version: 2\ntunnels:\n  web:\n    addr: 80\n    bindings: [internal]\n',
    )
    await assert.rejects(
      running(startCommand, ['--config', 'ngrok.yml'], terminal).done,
      /ngrok\.yml:5: `tunnels\.web\.bindings` is not supported/,
    )
  })

  test('the error for an unknown name lists the known ones', async () => {
    await assert.rejects(started(['wbe']).done, /there is no tunnel 'wbe'; did you mean 'web'\?/)
    await assert.rejects(started(['frobnicate']).done, /there are web, ssh$/)
    await assert.rejects(started(['web', '--all']).done, /name tunnels or give --all, not both/)
    await assert.rejects(started([], '').done, /there are no tunnels in .*postern-agent\.yml/)
  })
})

describe('wrong usage', () => {
  const cases: [args: string[], says: RegExp][] = [
    [['http'], /missing required argument 'address'/],
    [['http', 'ftp://x'], /^error: the address must be an address such as/],
    [['http', '3000', '--domian', 'x'], /unknown option '--domian'\n\(Did you mean --domain\?\)/],
    [['http', '3000', '--domain', 'a', '--subdomain', 'b'], /^error: --subdomain cannot be combined with `domain`/],
    [['http', '3000', '--cidr-deny', '10.0.0.0/8'], /^error: --cidr-allow is missing: without it nobody gets in/],
    [['http', '3000', '--circuit-breaker', 'much'], /must be a number from 0 to 1/],
    [['http', '3000', '--mutual-tls-cas', 'none.pem'], /^error: --mutual-tls-cas cannot be read: there is no /],
    [['http', '3000', '--label', 'a=b', '--domain', 'x'], /^error: --domain cannot be combined with `labels`/],
    [['http', '3000', '--verify-webhook', 'github'], /^error: --verify-webhook-secret is missing/],
    [
      ['http', '3000', '--oauth', 'github'],
      /^error: --oauth-client-id is missing: .*\n.*--oauth-client-secret is missing/,
    ],
    [['http', '3000', '--oauth-allow-email', 'a@b.test'], /^error: --oauth is missing: it says where visitors log in/],
    [
      ['http', '3000', '--oidc', 'https://id.test', '--oidc-client-id', 'a'],
      /^error: --oidc-client-secret is missing; /,
    ],
    [['tcp', '22', '--oidc', 'https://id.test'], /unknown option '--oidc'/],
    [['http', '3000', '--log-format', 'xml'], /Allowed choices are auto, lines, json/],
    [['http', '3000', '--pooling', '--label', 'a=b'], /^error: --pooling cannot be combined with `labels`/],
    [['tcp', '22', '--basic-auth', 'a:b'], /unknown option '--basic-auth'/],
    [['tls', '443', '--terminate-at', 'agent'], /^error: --terminate-at must be one of `edge`, `upstream`/],
    [['http', '3000', '--server', 'http://x'], /^error: `server` \(--server\) must be `host:port`/],
    [['http', '3000'], /^error: no authtoken: run `npx postern login`, set POSTERN_AUTHTOKEN or give --authtoken/],
  ]
  for (const [args, says] of cases) {
    test(`postern ${args.join(' ')}`, async () => {
      const terminal = testTerminal({ cwd: mkdtempSync(join(root, 'cwd-')), env: { HOME: root } })
      assert.equal(await run(args, terminal), 2, terminal.printed.err)
      assert.match(terminal.printed.err, says)
      assert.equal(terminal.printed.out, '')
    })
  }

  for (const name of ['http', 'tcp', 'tls', 'start', 'login']) {
    test(`postern ${name} --help shows usage and examples`, async () => {
      const terminal = here()
      assert.equal(await run([name, '--help'], terminal), 0)
      assert.match(terminal.printed.out, new RegExp(`^Usage: postern ${name}[\\s\\S]*\nExamples:\n {2}postern ${name}`))
    })
  }
})

describe('postern login', () => {
  const login = async (args: string[], { input = '', answers = [] as string[] } = {}) => {
    const terminal = { ...here(), readInput: async () => input }
    const questions: [text: string, isSecret: boolean][] = []
    const ask = {
      isPossible: answers.length > 0,
      async question(text: string, { isSecret = false } = {}) {
        questions.push([text, isSecret])
        return answers.shift() ?? ''
      },
    }
    await loginCommand(terminal, ask).exitOverride().parseAsync(args, { from: 'user' })
    return { terminal, questions, path: join(terminal.cwd, '.config/postern/agent.yml') }
  }

  test('saves a login that works in a file that only the user can read, and the agent uses it', async () => {
    const server = `127.0.0.1:${testServer.port}`
    const { path, terminal } = await login(['--server', server, '--authtoken', 'secret_token'])
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.match(
      readFileSync(path, 'utf8'),
      /^version: 1\nserver: 127\.0\.0\.1:\d+\nauthtoken: secret_token\nca: \|\n {2}-----BEGIN/,
    )
    assert.match(terminal.printed.out, /^Logged in to 127\.0\.0\.1:\d+ \(region test\); saved in .*agent\.yml\n$/)
    assert.equal(await testServer.latest.closed, undefined)
    const home = { ...terminal, env: { HOME: terminal.cwd } }
    const { says, signals, done, session } = running((...given) => tunnelCommand('http', ...given), ['3000'], home)
    await says(/tunnel online/)
    assert.equal((await session()).auth.authtoken.reveal(), 'secret_token')
    signals.emit('SIGINT')
    await done
  })

  test('asks for what is missing, without echo for the authtoken', async () => {
    const { questions, path } = await login([], { answers: [`127.0.0.1:${testServer.port}`, 'typed_token'] })
    assert.deepEqual(questions, [
      ['Server [localhost:7443]: ', false],
      ['Authtoken: ', true],
    ])
    assert.match(readFileSync(path, 'utf8'), /authtoken: typed_token/)
  })

  test('reads the authtoken from standard input when there is no terminal', async () => {
    const { path } = await login(['--server', `127.0.0.1:${testServer.port}`], { input: 'piped_token\n' })
    assert.match(readFileSync(path, 'utf8'), /authtoken: piped_token/)
  })

  test('keeps the rest of the file', async () => {
    const path = join(mkdtempSync(join(root, 'file-')), 'agent.yml')
    writeFileSync(path, '# mine\nmetadata: this machine # yes\nauthtoken: old\n')
    await login(['--server', `127.0.0.1:${testServer.port}`, '--authtoken', 'new', '--config', path])
    const text = readFileSync(path, 'utf8')
    assert.match(text, /^# mine\nmetadata: this machine # yes\nauthtoken: new\nserver: /)
    assert.equal(statSync(path).mode & 0o777, 0o600)
  })

  const refused: [name: string, args: () => string[], says: RegExp][] = [
    [
      'a server that is not there',
      () => ['--server', '127.0.0.1:1', '--authtoken', 'x'],
      /nothing listens at .*; nothing was written$/,
    ],
    ['no authtoken', () => ['--server', '127.0.0.1:1'], /no authtoken/],
    ['a bad server', () => ['--server', 'http://x', '--authtoken', 'x'], /^Failure: --server must be `host:port`/],
    ['a bad CA', () => ['--ca', '/none', '--authtoken', 'x'], /^Failure: --ca cannot be read: there is no \/none/],
    ['a token with a line break', () => ['--authtoken', 'a\nb'], /copy it again/],
  ]
  for (const [name, args, says] of refused) {
    test(`refuses ${name}`, async () => assert.rejects(login(args()), says))
  }

  test('writes nothing when the server refuses the authtoken', async () => {
    testServer.rules.auth = () => 'The authtoken is not known.\n\nERR_NGROK_107\n'
    const server = ['--server', `127.0.0.1:${testServer.port}`, '--authtoken', 'x']
    await assert.rejects(
      login(server),
      /^Failure: the server refused this authtoken: The authtoken is not known\.; nothing was written$/,
    )
    delete testServer.rules.auth
  })
})
