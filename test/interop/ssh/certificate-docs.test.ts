/** Runs the certificate commands of docs/ssh.md unchanged, except for the host, the port and the folder /etc/ssh. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ownLauncher } from '../../support/own-launcher.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { keyFolder, makeKey, missing } from './openssh.ts'
import { me, missingSshd, startSshd } from './sshd.ts'

const page = readFileSync(new URL('../../../docs/ssh.md', import.meta.url), 'utf8')
const section = /^## Certificates\n(.*?)^## /ms.exec(page)?.[1] ?? ''
const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text)

const missingJq = spawnSync('jq', ['--version']).error !== undefined && '`jq` is not on PATH'
const why = missing || missingSshd || missingJq
if (why) console.log(`the commands about SSH certificates in docs/ssh.md are not tried: ${why}`)

describe('the commands about certificates in docs/ssh.md', { skip: why }, () => {
  let platform: Platform
  let home = ''
  let etc = ''

  before(async () => {
    platform = await startPlatform()
    home = keyFolder()
    etc = join(home, 'etc')
    mkdirSync(join(home, '.ssh'))
    mkdirSync(join(home, 'bin'))
    mkdirSync(etc)
    writeFileSync(join(etc, 'sshd_config'), '')
    makeKey(join(home, '.ssh'), 'id_laptop')
    makeKey(etc, 'ssh_host_ed25519_key')
    script('postern', `exec '${process.execPath}' '${ownLauncher}' "$@"`)
    const ours = '-F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o IdentityAgent=none'
    script('ssh', `exec '${found('ssh')}' ${ours} "$@"`)
    const { publicLine } = makeKey(home, 'uploaded')
    await platform.admin.create('/ssh_credentials', { public_key: publicLine })
  })
  after(() => platform?.stop())

  function script(name: string, text: string): void {
    const file = join(home, 'bin', name)
    writeFileSync(file, `#!/bin/sh\n${text}\n`)
    chmodSync(file, 0o755)
  }

  /** Runs commands in one shell. */
  function shell(commands: string): ChildProcess {
    const here = commands
      .replaceAll('/etc/ssh/', `${etc}/`)
      .replaceAll('-p 2222 HOST', `-p ${platform.sshPort} 127.0.0.1`)
    return spawn('sh', ['-euc', here], {
      env: {
        ...process.env,
        HOME: home,
        USER: me,
        PATH: `${join(home, 'bin')}:${process.env.PATH}`,
        POSTERN_API_URL: platform.url,
        POSTERN_API_KEY: platform.apiKey,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  test('are found', () => assert.equal(blocks.length, 5))

  test('give a certificate that serves a tunnel, and servers and users that trust each other', async (t) => {
    const [sign = '', tunnel = '', ...servers] = blocks
    const setup = shell([sign, ...servers].join('\n'))
    let printed = ''
    setup.stderr?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
    await once(setup, 'close')
    assert.equal(setup.exitCode, 0, printed)

    // `exec`, so that the shell leaves nothing behind when it is ended.
    const client = shell(`exec ${tunnel}`)
    const ended = once(client, 'close')
    t.after(async () => {
      client.kill('SIGKILL')
      await ended
    })
    let out = ''
    for (const stream of [client.stdout, client.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        out += text
      })
    }
    await until(`ssh shows its address: ${out}`, () => /Forwarding +https:/.test(out))
    const { tunnel_sessions } = await platform.admin.get('/tunnel_sessions')
    const { ssh_credentials } = await platform.admin.get('/ssh_credentials')
    assert.equal(tunnel_sessions[0].credential.id, ssh_credentials[0].id)

    const hostKey = join(etc, 'ssh_host_ed25519_key')
    assert.equal(
      readFileSync(join(etc, 'sshd_config'), 'utf8'),
      `TrustedUserCAKeys ${etc}/user-ca.pub\nHostCertificate ${hostKey}-cert.pub\n`,
    )
    const sshd = await startSshd(home, {
      hostKeys: [{ file: hostKey, publicLine: '', certificate: `${hostKey}-cert.pub` }],
      authorities: [readFileSync(join(etc, 'user-ca.pub'), 'utf8').trim()],
    })
    t.after(() => sshd.stop())
    const options = {
      UserKnownHostsFile: join(home, '.ssh', 'known_hosts'),
      StrictHostKeyChecking: 'yes',
      HostKeyAlias: 'ssh.example.com',
      HostName: '127.0.0.1',
      IdentityAgent: 'none',
    }
    const given = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    const login = ['-F', '/dev/null', '-i', join(home, '.ssh', 'id_laptop'), '-p', String(sshd.port), '-l', me]
    const { status, stdout, stderr } = spawnSync('ssh', [...given, ...login, 'ssh.example.com', 'echo in'], {
      encoding: 'utf8',
    })
    assert.deepEqual([status, stdout.trim()], [0, 'in'], stderr)
  })
})

/** The path of a program, so that a script of the same name can run it. */
function found(name: string): string {
  return spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim()
}
