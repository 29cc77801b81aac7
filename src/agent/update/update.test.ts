import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { installedUpdate } from './installed.ts'
import { releaseKey } from './release-key.ts'
import { releaseSource } from './release-source.ts'
import { signedText } from './releases.ts'
import { Updater } from './updater.ts'
import { isUpdate } from './version.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-update-'))
after(() => rmSync(root, { recursive: true }))
const { publicKey, privateKey } = generateKeyPairSync('ed25519')

/** One entry of a tar archive. */
function entry(
  name: string,
  content: string | Buffer,
  { type = '0', mode = '0000644', size }: { type?: string; mode?: string; size?: string } = {},
): Buffer {
  const body = Buffer.from(content)
  const head = Buffer.alloc(512)
  head.write(name, 0, 100)
  head.write(mode, 100)
  head.write(size ?? body.length.toString(8).padStart(11, '0'), 124)
  head.write(' '.repeat(8), 148)
  head.write(type, 156)
  head.write('ustar\x0000', 257)
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return Buffer.concat([head, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}

function archiveOf(...entries: Buffer[]): Buffer {
  return gzipSync(Buffer.concat([...entries, Buffer.alloc(1024)]))
}

function packageOf(version: string, ...more: Buffer[]): Buffer {
  return archiveOf(
    entry('package/', '', { type: '5' }),
    entry('package/package.json', JSON.stringify({ name: 'postern', version })),
    entry('package/bin/postern.js', `console.log('postern ${version}')`, { mode: '0000755' }),
    ...more,
  )
}

interface Offer {
  readonly version: string
  readonly archive?: Buffer
  readonly file?: string
  readonly key?: KeyObject
  /** The version that is signed, if it differs. */
  readonly signedAs?: string
}

/** A folder of releases. */
function offer(...releases: Offer[]): string {
  const folder = mkdtempSync(join(root, 'source-'))
  const list = releases.map(({ version, archive = packageOf(version), key = privateKey, signedAs = version, file }) => {
    const name = `postern-${version}.tgz`
    writeFileSync(join(folder, name), archive)
    const signature = sign(null, signedText(signedAs, archive), key).toString('base64')
    return { version, archive: file ?? name, signature }
  })
  writeFileSync(join(folder, 'releases.json'), JSON.stringify({ releases: list }))
  return folder
}

function updaterOf(
  source: string,
  { version = '1.2.3', folder = join(mkdtempSync(join(root, 'home-')), 'versions') } = {},
) {
  const done = Promise.withResolvers<{ version: string; error?: Error }>()
  const updater = new Updater({ version, source: releaseSource(source), publicKey, folder, onDone: done.resolve })
  return { updater, folder, done: done.promise }
}

/** Runs an update to its end. */
async function update(source: string, given: Parameters<typeof updaterOf>[1] = {}) {
  const { updater, folder, done } = updaterOf(source, given)
  const { error, afterwards } = await updater.run()
  assert.equal(error, undefined)
  afterwards?.()
  return { ...(await done), folder, updater }
}

describe('an update', () => {
  test('installs the newest release of the same major version, complete and ready to run', async () => {
    const source = offer({ version: '1.2.4' }, { version: '1.10.0' }, { version: '1.9.9' }, { version: '2.0.0' })
    const { version, error, folder } = await update(source)
    assert.deepEqual([version, error], ['1.10.0', undefined])
    const installed = installedUpdate(folder, '1.2.3')
    assert.equal(installed?.version, '1.10.0')
    const ran = spawnSync(process.execPath, [installed?.launcher ?? ''], { encoding: 'utf8' })
    assert.equal(ran.stdout, 'postern 1.10.0\n')
    assert.deepEqual(readdirSync(folder).toSorted(), ['1.10.0', 'current'])
  })

  test('can come from a web address', async () => {
    const folder = offer({ version: '1.3.0' })
    const server = createServer((request, response) => {
      const path = join(folder, request.url?.replace('/releases/', '') ?? '')
      response.writeHead(existsSync(path) ? 200 : 404).end(existsSync(path) ? readFileSync(path) : '')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo // it listens on a port
    try {
      const { error } = await update(`http://127.0.0.1:${port}/releases`)
      assert.equal(error, undefined)
      const none = await updaterOf(`http://127.0.0.1:${port}/nothing`).updater.run()
      assert.match(none.error ?? '', /^the list of releases cannot be read: releases\.json: HTTP 404$/)
    } finally {
      server.close()
    }
  })

  test('accepts archives of tar and npm: long names, and several kinds of records', async () => {
    const folder = mkdtempSync(join(root, 'tar-'))
    const long = `${'deep/'.repeat(30)}${'n'.repeat(120)}.js`
    mkdirSync(join(folder, 'package', long, '..'), { recursive: true })
    mkdirSync(join(folder, 'package/bin'))
    writeFileSync(join(folder, 'package', long), 'long')
    writeFileSync(join(folder, 'package/bin/postern.js'), '')
    writeFileSync(join(folder, 'package/package.json'), '{"name":"postern","version":"1.3.0"}')
    for (const format of ['gnu', 'pax', 'posix']) {
      const { stdout, status } = spawnSync('tar', ['-czf', '-', `--format=${format}`, 'package'], { cwd: folder })
      assert.equal(status, 0)
      const { error, folder: versions } = await update(offer({ version: '1.3.0', archive: stdout }))
      assert.equal(error, undefined)
      assert.equal(readFileSync(join(versions, '1.3.0', long), 'utf8'), 'long')
    }
  })

  test('keeps the last releases and removes older ones', async () => {
    const { folder } = await update(offer({ version: '1.3.0' }))
    for (const version of ['1.4.0', '1.5.0', '1.6.0']) {
      rmSync(join(folder, 'current'))
      await update(offer({ version }), { folder })
    }
    assert.deepEqual(readdirSync(folder).toSorted(), ['1.4.0', '1.5.0', '1.6.0', 'current'])
  })

  test('by two agents of one user at once ends well for both', async () => {
    const source = offer({ version: '1.3.0' })
    const { folder } = updaterOf(source)
    const both = await Promise.all([update(source, { folder }), update(source, { folder })])
    assert.deepEqual(
      both.map(({ error }) => error),
      [undefined, undefined],
    )
  })
})

describe('an update is refused (contract 4.3 rule 4) because', () => {
  test('none is available', async () => {
    for (const source of [offer(), offer({ version: '1.2.3' }, { version: '1.2.2' }, { version: '2.0.0' })]) {
      const { error } = await updaterOf(source).updater.run()
      assert.equal(error, 'no update is available: 1.2.3 is the newest release of major version 1')
    }
  })

  test('the requested version has another major version', async () => {
    const { updater } = updaterOf(offer({ version: '1.2.4' }, { version: '2.0.0' }))
    const { error } = await updater.run({ version: '2.0.0', permitMajorVersion: true })
    assert.match(error ?? '', /^no update is available/)
  })

  test('an update is already in progress', async () => {
    const { updater, done } = updaterOf(offer({ version: '1.2.4' }))
    const [first, second] = await Promise.all([updater.run(), updater.run()])
    assert.equal(second.error, 'an update is already in progress')
    first.afterwards?.()
    assert.equal((await updater.run()).error, 'an update is already in progress')
    await done
  })

  test('the agent is already updated and has not been restarted', async () => {
    const { updater } = await update(offer({ version: '1.2.4' }, { version: '1.2.5' }))
    assert.equal((await updater.run()).error, 'the agent is already updated to 1.2.5 and has not been restarted')
  })

  test('the list of releases is missing or not a list', async () => {
    const folder = offer()
    for (const text of ['{', '{}', '{"releases":[{"version":"1.2.4"}]}', `{"releases":[${' '.repeat(300_000)}]}`]) {
      writeFileSync(join(folder, 'releases.json'), text)
      const { error } = await updaterOf(folder).updater.run()
      assert.match(error ?? '', /^the list of releases cannot be read: /)
    }
    rmSync(join(folder, 'releases.json'))
    assert.match((await updaterOf(folder).updater.run()).error ?? '', /^the list of releases cannot be read: /)
  })
})

describe('nothing is installed, and the agent can try again, when', () => {
  const other = generateKeyPairSync('ed25519').privateKey
  const version = '1.2.4'
  const damaged = packageOf(version)
  damaged[damaged.length - 20] = (damaged[damaged.length - 20] ?? 0) ^ 1
  const outside = [
    'package/../../evil',
    '/etc/evil',
    'other/file',
    'package/a/../../b',
    'package/a\\b',
    'package',
    'package/c:',
  ]
  const cases: [name: string, offer: Offer, says: RegExp][] = [
    ['the signature is of another key', { version, key: other }, /^the signature of .* is invalid/],
    ['the signature is of another version', { version, signedAs: '1.2.3' }, /^the signature of .* is invalid/],
    ['the archive is not there', { version, file: 'none.tgz' }, /ENOENT/],
    [
      'the archive is named outside of the folder',
      { version, file: '../x.tgz' },
      /has a file name that is not allowed/,
    ],
    ['the archive is no archive', { version, archive: Buffer.from('hello') }, /incorrect header check/],
    ['the archive is damaged', { version, archive: damaged }, /./],
    [
      'the archive is cut short',
      { version, archive: gzipSync(entry('package/x', 'y').subarray(0, 600)) },
      /is truncated/,
    ],
    ['it holds another version', { version, archive: packageOf('1.2.9') }, /does not hold Postern 1\.2\.4/],
    [
      'it has no launcher',
      { version, archive: archiveOf(entry('package/package.json', `{"name":"postern","version":"${version}"}`)) },
      /ENOENT/,
    ],
    [
      'it holds a link',
      { version, archive: packageOf(version, entry('package/x', '', { type: '2' })) },
      /neither a file nor a folder/,
    ],
    [
      'it holds a hard link',
      { version, archive: packageOf(version, entry('package/x', '', { type: '1' })) },
      /neither a file nor/,
    ],
    ['it holds a file twice', { version, archive: packageOf(version, entry('package/package.json', '{}')) }, /EEXIST/],
    [
      'a file says that it is huge',
      { version, archive: packageOf(version, entry('package/x', '', { size: '77777777777' })) },
      /too large/,
    ],
    ...outside.map((name): [string, Offer, RegExp] => [
      `it holds ${name}`,
      { version, archive: packageOf(version, entry(name, 'evil')) },
      /outside its package/,
    ]),
  ]
  for (const [name, bad, says] of cases) {
    test(name, async () => {
      const { error, folder, updater } = await update(offer(bad))
      assert.match(error?.message ?? '', says)
      assert.equal(installedUpdate(folder, '1.2.3'), undefined)
      assert.deepEqual(existsSync(folder) ? readdirSync(folder) : [], [])
      assert.equal((await updater.run()).error, undefined)
    })
  }
})

test('a release is not run when another user could have written it, or when it is incomplete', async () => {
  const { folder } = await update(offer({ version: '1.2.4' }))
  assert.ok(installedUpdate(folder, '1.2.3'))
  chmodSync(folder, 0o777)
  assert.equal(installedUpdate(folder, '1.2.3'), undefined)
  chmodSync(folder, 0o700)
  writeFileSync(join(folder, 'current'), '../../evil')
  assert.equal(installedUpdate(folder, '1.2.3'), undefined)
  writeFileSync(join(folder, 'current'), '1.2.4')
  assert.ok(installedUpdate(folder, '1.2.3'))
  assert.equal(installedUpdate(folder, '1.2.4'), undefined, 'it runs already')
  rmSync(join(folder, '1.2.4/bin'), { recursive: true })
  assert.equal(installedUpdate(folder, '1.2.3'), undefined)
})

describe('versions', () => {
  const cases: [to: string, from: string, is: boolean][] = [
    ['1.2.4', '1.2.3', true],
    ['1.10.0', '1.9.9', true],
    ['1.2.3', '1.2.3', false],
    ['1.2.2', '1.2.3', false],
    ['2.0.0', '1.2.3', false],
    ['1.3.0-rc.1', '1.2.3', false],
    ['1.3.1', '1.3.0-rc.1', true],
    ['01.3.0', '1.2.3', false],
    ['v1.3.0', '1.2.3', false],
    ['', '1.2.3', false],
  ]
  for (const [to, from, is] of cases) {
    test(`${to || 'nothing'} is ${is ? '' : 'not '}an update of ${from}`, () => assert.equal(isUpdate(to, from), is))
  }
})

test('a key is accepted in both of its forms, and no other kind of key is', () => {
  const pem = publicKey.export({ type: 'spki', format: 'pem' })
  const der = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  assert.ok(releaseKey(String(pem)).equals(publicKey))
  assert.ok(releaseKey(der).equals(publicKey))
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' })
  for (const bad of ['', 'x', String(rsa)]) assert.throws(() => releaseKey(bad), /must be an Ed25519 public key/)
})
