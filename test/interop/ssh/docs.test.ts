/** Runs docs/ssh.md from top to bottom in a shell, unchanged except for the host and the ports of this test. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { tcpRange } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { Home } from './home.ts'
import { missing } from './openssh.ts'

/** Without the section about certificates, which needs an sshd and has its own test. */
const page = readFileSync(new URL('../../../docs/ssh.md', import.meta.url), 'utf8').replace(
  /^## Certificates\n.*?(?=^## )/ms,
  '',
)
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text)
const [makeKey = '', checkHost = '', useAgent = '', useAutossh = '', ...others] = blocks('sh')
const [unit = ''] = blocks('ini')
const commands = [...page.matchAll(/^\| `(ssh .*?)` \|/gm)].map(([, command = '']) => command)

const online = /Forwarding +(https?:\/\/|tls:\/\/|tcp:\/\/|labels )/

describe('docs/ssh.md', { skip: missing }, () => {
  let platform: Platform
  let home: Home
  let tcpPort = 0

  /** Replaces the host and the default ports of the page. */
  const here = (text: string): string =>
    text
      .replaceAll('HOST', '127.0.0.1')
      .replaceAll('-p 2222', `-p ${platform.sshPort}`)
      .replaceAll('http://127.0.0.1:7400', platform.url)
      .replaceAll('20001', String(tcpPort))

  before(async () => {
    const range = await tcpRange(100)
    platform = await startPlatform({ flags: range.flags })
    tcpPort = range.from
    home = new Home({ POSTERN_API_URL: platform.url, POSTERN_API_KEY: platform.apiKey })
    const { cert, key } = await tlsIdentity(['app.example.com'])
    home.write('app.crt', cert)
    home.write('app.key', key)
    home.write('policy.yml', 'on_http_request:\n  - actions:\n      - type: deny\n')
  })
  after(() => platform.stop())
  after(() => home.remove())

  test('has all the commands that are run here', () => {
    assert.deepEqual([commands.length, others.length, unit.length > 0], [18, 0, true])
  })

  test('a key is made and uploaded', async (t) => {
    assert.equal(await home.run(t, here(makeKey)).ended, 0)
    const { ssh_credentials } = await platform.admin.get('/ssh_credentials')
    assert.equal(ssh_credentials[0].public_key.split(' ')[1], home.read('.ssh/id_ed25519.pub').split(' ')[1])
  })

  test('the host key is compared with the one that the server shows, and stored', async (t) => {
    const shell = home.run(t, here(checkHost))
    assert.equal(await shell.ended, 0)
    const [, scanned] = /(SHA256:\S+)/.exec(shell.out()) ?? []
    const [, said] = /"ssh_host_key":"(?:\w+ )?(SHA256:[^" ]+)/.exec(shell.out()) ?? []
    assert.ok(scanned !== undefined && scanned === said, shell.out())
  })

  for (const command of commands) {
    test(command, async (t) => {
      const text = here(command)
      // `-t` needs a terminal, so the command gets one.
      const isScreen = /^ssh -t /.test(text)
      const shell = home.run(t, isScreen ? `script -qec '${text}' /dev/null` : text)
      if (text.endsWith('--help')) {
        assert.equal(await shell.ended, 0)
        assert.match(shell.out(), /--oauth-client-id <id>/)
        return
      }
      await shell.says(online)
      if (isScreen) await shell.says(/Latency +[\d.]+ ms/)
      await shell.stop()
    })
  }

  test('a key from an agent', async (t) => {
    const shell = home.run(t, `trap 'ssh-agent -k' EXIT TERM\n${here(useAgent)}`, { key: 'agent' })
    await shell.says(online)
    await shell.stop()
  })

  test('the line for autossh', async (t) => {
    const isThere = spawnSync('autossh', ['-V']).error === undefined
    const shell = home.run(t, here(useAutossh), { autossh: isThere ? 'real' : 'once' })
    await shell.says(online)
    await shell.stop()
  })

  test('the systemd unit is valid, and its command gets its name back after a restart', async (t) => {
    const file = join(home.folder, 'tunnel.service')
    writeFileSync(file, unit)
    if (spawnSync('systemd-analyze', ['--version']).error === undefined) {
      execFileSync('systemd-analyze', ['verify', '--man=no', file], { stdio: 'pipe' })
    }
    const [, start = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
    for (let i = 0; i < 2; i++) {
      const shell = home.run(t, here(start).replace('/usr/bin/ssh', 'ssh'))
      await shell.says(/Forwarding +https:\/\/app\.example\.com/)
      await shell.stop()
    }
  })
})
