/** OpenSSH accepts what the API signs: `ssh-keygen` reads it, `sshd` lets users in by it, `ssh` trusts hosts by it. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Json } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { type Key, keyFolder, makeKey, missing } from './openssh.ts'
import { me, missingSshd, type Sshd, startSshd } from './sshd.ts'

const why = missing || missingSshd
if (why) console.log(`SSH certificates are not tested with OpenSSH: ${why}`)

const authorityKinds: Readonly<Record<string, Json>> = {
  ed25519: {},
  'ecdsa-p256': { private_key_type: 'ecdsa' },
  'ecdsa-p384': { private_key_type: 'ecdsa', elliptic_curve: 'p384' },
  'ecdsa-p521': { private_key_type: 'ecdsa', elliptic_curve: 'p521' },
  'rsa-2048': { private_key_type: 'rsa', key_size: 2048 },
  'rsa-4096': { private_key_type: 'rsa', key_size: 4096 },
}

const keyKinds: Readonly<Record<string, string[]>> = {
  ed25519: ['-t', 'ed25519'],
  'ecdsa-256': ['-t', 'ecdsa', '-b', '256'],
  'ecdsa-384': ['-t', 'ecdsa', '-b', '384'],
  'ecdsa-521': ['-t', 'ecdsa', '-b', '521'],
  'rsa-3072': ['-t', 'rsa', '-b', '3072'],
}

const PAST = { valid_after: '2020-01-01T00:00:00Z', valid_until: '2021-01-01T00:00:00Z' }
const FUTURE = { valid_after: '2090-01-01T00:00:00Z', valid_until: '2091-01-01T00:00:00Z' }

describe('SSH certificates with OpenSSH', { skip: why }, () => {
  let platform: Platform
  let sshd: Sshd
  let folder = ''
  const authorities = new Map<string, Json>()
  const keys = new Map<string, Key>()
  let count = 0

  before(async () => {
    platform = await startPlatform()
    folder = keyFolder()
    for (const [name, body] of Object.entries(authorityKinds)) {
      authorities.set(name, await platform.admin.create('/ssh_certificate_authorities', body))
    }
    for (const [name, options] of Object.entries(keyKinds)) keys.set(name, makeKey(folder, `user-${name}`, options))
    const hostKeys = []
    for (const [name, ca] of [
      ['ed25519', 'rsa-4096'],
      ['ecdsa-256', 'ed25519'],
      ['rsa-3072', 'ecdsa-p384'],
    ] as const) {
      const key = makeKey(folder, `host-${name}`, keyKinds[name])
      hostKeys.push({ ...key, certificate: await certificateFile('host', key, ca, { principals: ['127.0.0.1'] }) })
    }
    sshd = await startSshd(folder, {
      hostKeys,
      authorities: [...authorities.values()].map(({ public_key }) => String(public_key)),
    })
  })
  after(async () => {
    await sshd?.stop()
    await platform?.stop()
  })

  function authority(name: string): Json {
    const found = authorities.get(name)
    assert.ok(found, name)
    return found
  }

  /** Signs through the API; returns the file of the certificate. */
  async function certificateFile(kind: 'user' | 'host', key: Key, ca: string, more: Json): Promise<string> {
    const { certificate } = await platform.admin.create(`/ssh_${kind}_certificates`, {
      ssh_certificate_authority_id: authority(ca).id,
      public_key: key.publicLine,
      ...more,
    })
    const file = join(folder, `${kind}-${count++}-cert.pub`)
    writeFileSync(file, `${certificate}\n`)
    return file
  }

  /** Logs in with a certificate and runs a command; trusts the host only by its authority. */
  function login(
    key: Key,
    certificate: string,
    {
      command = 'echo in',
      hostType = 'ssh-ed25519-cert-v01@openssh.com',
      trusted = authority('rsa-4096').public_key,
      port = sshd.port,
    }: { command?: string; hostType?: string; trusted?: string; port?: number } = {},
  ) {
    const known = join(folder, `known-${count++}`)
    writeFileSync(known, `@cert-authority * ${trusted}\n`)
    const options = {
      CertificateFile: certificate,
      HostKeyAlgorithms: hostType,
      IdentitiesOnly: 'yes',
      IdentityAgent: 'none',
      BatchMode: 'yes',
      StrictHostKeyChecking: 'yes',
      UserKnownHostsFile: known,
      GlobalKnownHostsFile: '/dev/null',
    }
    const { status, stdout, stderr } = spawnSync(
      'ssh',
      [
        ...['-F', '/dev/null', '-i', key.file, '-p', String(port), '-l', me],
        ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
        ...['127.0.0.1', command],
      ],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
    )
    return { status, out: stdout.trim(), err: stderr }
  }

  function userKey(name = 'ed25519'): Key {
    const found = keys.get(name)
    assert.ok(found, name)
    return found
  }

  for (const ca of Object.keys(authorityKinds)) {
    test(`a user certificate of a ${ca} authority logs in`, async () => {
      const key = userKey()
      const { status, out, err } = login(key, await certificateFile('user', key, ca, { principals: [me] }))
      assert.deepEqual([status, out], [0, 'in'], err)
    })
  }

  for (const name of Object.keys(keyKinds)) {
    test(`a user certificate of a ${name} key logs in`, async () => {
      const key = userKey(name)
      const file = await certificateFile('user', key, 'ed25519', { principals: ['somebody', me] })
      const { status, out, err } = login(key, file)
      assert.deepEqual([status, out], [0, 'in'], err)
    })
  }

  const hosts: [type: string, ca: string][] = [
    ['ssh-ed25519-cert-v01@openssh.com', 'rsa-4096'],
    ['ecdsa-sha2-nistp256-cert-v01@openssh.com', 'ed25519'],
    ['rsa-sha2-512-cert-v01@openssh.com', 'ecdsa-p384'],
  ]
  for (const [hostType, ca] of hosts) {
    test(`a host with a certificate of type ${hostType} is trusted by its ${ca} authority only`, async () => {
      const key = userKey()
      const file = await certificateFile('user', key, 'ed25519', { principals: [me] })
      const { status, out, err } = login(key, file, { hostType, trusted: authority(ca).public_key })
      assert.deepEqual([status, out], [0, 'in'], err)
      const other = login(key, file, { hostType, trusted: authority('ecdsa-p521').public_key })
      assert.notEqual(other.status, 0)
      assert.match(other.err, /Host key verification failed/)
    })
  }

  const shut: [what: string, body: () => Json, log: RegExp][] = [
    ['has expired', () => ({ principals: [me], ...PAST }), /Certificate invalid: expired/],
    ['is not valid yet', () => ({ principals: [me], ...FUTURE }), /Certificate invalid: not yet valid/],
    ['is for another user', () => ({ principals: ['somebody-else'] }), /name is not a listed principal/],
    ['has no principals', () => ({ principals: [] }), /lacks principal list/],
    [
      'is for another address',
      () => ({ principals: [me], critical_options: { 'source-address': '192.0.2.0/24' } }),
      /not from a permitted source address/,
    ],
    [
      'has an unknown critical option',
      () => ({ principals: [me], critical_options: { 'dance@example.com': 'yes' } }),
      /critical option "dance@example\.com" is not supported/,
    ],
  ]
  for (const [what, body, log] of shut) {
    test(`sshd keeps out a user certificate that ${what}`, async () => {
      const key = userKey()
      const { status, err } = login(key, await certificateFile('user', key, 'ed25519', body()))
      assert.equal(status, 255, err)
      assert.match(err, /Permission denied/)
      await until(`sshd logs ${log}`, () => log.test(sshd.log()))
    })
  }

  test('sshd keeps out the certificate of another key, and that of a host', async () => {
    const certified = userKey('ecdsa-256')
    const file = await certificateFile('user', certified, 'ed25519', { principals: [me] })
    assert.equal(login(userKey(), file).status, 255)
    const host = await certificateFile('host', userKey(), 'ed25519', { principals: [me] })
    assert.equal(login(userKey(), host).status, 255)
  })

  test("a forced command replaces the requested one, and the client's own address is let in", async () => {
    const critical_options = {
      'force-command': 'echo "forced: $SSH_ORIGINAL_COMMAND"',
      'source-address': '127.0.0.0/8,::1',
    }
    const file = await certificateFile('user', userKey(), 'ecdsa-p521', { principals: [me], critical_options })
    const { status, out, err } = login(userKey(), file, { command: 'echo in' })
    assert.deepEqual([status, out], [0, 'forced: echo in'], err)
  })

  test('ssh does not trust a host whose certificate has expired, or is for another host', async () => {
    const user = await certificateFile('user', userKey(), 'ed25519', { principals: [me] })
    const cases: [more: Json, says: RegExp][] = [
      [{ principals: ['127.0.0.1'], ...PAST }, /expired/],
      [{ principals: ['other.example.com'] }, /name is not a listed principal/i],
    ]
    for (const [more, says] of cases) {
      const own = keyFolder()
      const key = makeKey(own, 'host')
      const certificate = await certificateFile('host', key, 'rsa-4096', more)
      const server = await startSshd(own, {
        hostKeys: [{ ...key, certificate }],
        authorities: [authority('ed25519').public_key],
      })
      try {
        const { status, err } = login(userKey(), user, { port: server.port })
        assert.equal(status, 255)
        assert.match(err, says)
      } finally {
        await server.stop()
      }
    }
  })

  test('ssh-keygen reads all of a certificate', async () => {
    const file = await certificateFile('user', userKey('rsa-3072'), 'rsa-2048', {
      principals: ['ada', 'root'],
      valid_after: '2026-01-02T03:04:05Z',
      valid_until: '2036-05-06T07:08:09Z',
      critical_options: { 'source-address': '10.0.0.0/8', 'force-command': 'date' },
      extensions: { 'permit-pty': '', 'permit-agent-forwarding': '' },
    })
    const shown = execFileSync('ssh-keygen', ['-L', '-f', file], {
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC' },
    })
    assert.deepEqual(
      shown
        .split('\n')
        .slice(1)
        .map((line) => line.trim())
        .filter((line) => line !== '' && !/^(Public key|Serial|Key ID|Signing CA):/.test(line)),
      [
        'Type: ssh-rsa-cert-v01@openssh.com user certificate',
        'Valid: from 2026-01-02T03:04:05 to 2036-05-06T07:08:09',
        'Principals:',
        'ada',
        'root',
        'Critical Options:',
        'force-command date',
        'source-address 10.0.0.0/8',
        'Extensions:',
        'permit-agent-forwarding',
        'permit-pty',
      ],
    )
    assert.match(shown, /Key ID: "sucrt_[0-9A-Za-z]{27}"/)
    assert.match(shown, /Signing CA: RSA SHA256:\S+ \(using rsa-sha2-512\)/)
    const host = await certificateFile('host', userKey('ecdsa-384'), 'ed25519', { principals: ['a.example.com'] })
    const hostShown = execFileSync('ssh-keygen', ['-L', '-f', host], { encoding: 'utf8' })
    assert.match(
      hostShown,
      /host certificate\n(.*\n)*\s+a\.example\.com\n\s+Critical Options: \(none\)\n\s+Extensions: \(none\)/,
    )
  })
})
