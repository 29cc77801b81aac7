import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, type TestContext, test } from 'node:test'
import { type Identity, makeIdentity } from '../../../test/support/make-certificate.ts'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { CertificateFiles } from './certificate-files.ts'

const NOW = Date.parse('2026-06-01T00:00:00Z')
const DAY_MS = 86_400_000

const made = (dnsNames: readonly string[], days = 90) =>
  makeIdentity({ dnsNames, notBefore: new Date(NOW - DAY_MS), notAfter: new Date(NOW + days * DAY_MS) })

describe('certificates that are files', () => {
  let folder: string
  let one: Identity
  let other: Identity
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'json', destination: { write: (line) => lines.push(line) } })

  before(async () => {
    one = await made(['one.test', 'www.one.test'])
    other = await made(['*.other.test'])
  })
  beforeEach(async () => {
    lines.length = 0
    folder = await mkdtemp(join(tmpdir(), 'postern-files-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const put = async ({ certificatePem, privateKeyPem }: Identity, cert: string, key: string) => {
    const at = (path: string) => join(folder, path)
    await mkdir(join(at(cert), '..'), { recursive: true })
    await writeFile(at(cert), certificatePem)
    await writeFile(at(key), privateKeyPem)
  }
  const opened = async (t: TestContext, clock = { now: NOW }) => {
    const files = new CertificateFiles({ folder, now: () => clock.now, log, lookMs: 5 })
    files.start()
    t.after(async () => {
      files.stop()
      await rm(folder, { recursive: true, force: true })
    })
    await files.ready()
    return files
  }
  const namesIn = (files: CertificateFiles) => [...files.byName.keys()].sort()

  const layouts: readonly [tool: string, cert: string, key: string][] = [
    ['certbot', 'live/one.test/fullchain.pem', 'live/one.test/privkey.pem'],
    ['certbot, by its folder of live ones', 'one.test/fullchain.pem', 'one.test/privkey.pem'],
    ['cert-manager', 'tls.crt', 'tls.key'],
    ['cert-manager, several', 'one-tls/tls.crt', 'one-tls/tls.key'],
    ['a pair by name', 'one.test.crt', 'one.test.key'],
    ['a pair by name, in PEM', 'one.test.pem', 'one.test.key'],
    ['mkcert', 'one.test+1.pem', 'one.test+1-key.pem'],
  ]
  for (const [tool, cert, key] of layouts) {
    test(`are found as ${tool} names them`, async (t) => {
      await put(one, cert, key)
      const files = await opened(t)
      assert.deepEqual(namesIn(files), ['one.test', 'www.one.test'])
      assert.deepEqual(
        [files.byName.get('one.test')?.cert, files.byName.get('one.test')?.key],
        [one.certificatePem, one.privateKeyPem],
      )
      assert.deepEqual(files.metrics, { served: 1, bad: 0 })
    })
  }

  test('come and go with their files, and listeners are told', async (t) => {
    const files = await opened(t)
    let reported = 0
    files.whenChanged(() => reported++)
    assert.deepEqual(namesIn(files), [])
    await put(other, 'other.crt', 'other.key')
    await until('the new pair is served', () => files.covers('a.other.test'))
    assert.equal(files.covers('a.b.other.test'), false)
    assert.equal(reported, 1)
    await rm(join(folder, 'other.key'))
    await until('the pair is gone', () => !files.covers('a.other.test'))
    assert.equal(reported, 2)
  })

  test('can be replaced as Kubernetes does it: by another link to their folder', async (t) => {
    const second = await made(['one.test'])
    await put(one, '..first/tls.crt', '..first/tls.key')
    await put(second, '..second/tls.crt', '..second/tls.key')
    await symlink('..first', join(folder, '..data'))
    for (const name of ['tls.crt', 'tls.key']) await symlink(`..data/${name}`, join(folder, name))
    const files = await opened(t)
    assert.equal(files.byName.get('one.test')?.cert, one.certificatePem)
    assert.equal(files.metrics.served, 1, 'the target of the link is not found twice')
    await symlink('..second', join(folder, '..data_tmp'))
    await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    await until('the other one is served', () => files.byName.get('one.test')?.cert === second.certificatePem)
    assert.deepEqual(namesIn(files), ['one.test'])
  })

  test('stay in use while a pair does not match, which is logged once and without its key', async (t) => {
    await put(one, 'one.crt', 'one.key')
    const files = await opened(t)
    await writeFile(join(folder, 'one.key'), other.privateKeyPem)
    const said = () => lines.filter((line) => line.includes('does not belong to the first certificate')).length
    await until('it is said', () => said() > 0)
    assert.equal(files.byName.get('one.test')?.cert, one.certificatePem)
    assert.deepEqual(files.metrics, { served: 1, bad: 1 })
    await put(other, 'other.crt', 'other.key')
    await until('the folder was looked through again', () => files.covers('a.other.test'))
    assert.equal(said(), 1)
    const renewed = await made(['one.test'])
    await put(renewed, 'one.crt', 'one.key')
    await until('the renewed one is served', () => files.byName.get('one.test')?.cert === renewed.certificatePem)
    assert.deepEqual(files.metrics, { served: 2, bad: 0 })
    for (const { privateKeyPem } of [one, other, renewed]) {
      assert.ok(!lines.join('').includes(privateKeyPem.split('\n')[1] ?? ''))
    }
  })

  test('are not served when they are faulty, and others are', async (t) => {
    await put(one, 'one.crt', 'one.key')
    await put(await made([]), 'nameless.crt', 'nameless.key')
    await put(await made(['old.test'], -0.5), 'old.crt', 'old.key')
    await writeFile(join(folder, 'large.crt'), 'x'.repeat(100_000))
    await writeFile(join(folder, 'large.key'), '')
    await writeFile(join(folder, 'alone.crt'), 'no key beside it')
    const files = await opened(t)
    assert.deepEqual(namesIn(files), ['one.test', 'www.one.test'])
    assert.deepEqual(files.metrics, { served: 1, bad: 3 })
    const warned = lines.map((line) => JSON.parse(line)).filter(({ fault }) => fault)
    assert.deepEqual(
      new Map(warned.map(({ file, fault }) => [file, fault])),
      new Map([
        ['large.crt', 'EFBIG'],
        ['nameless.crt', 'The certificate names no host.'],
        ['old.crt', 'it has expired'],
      ]),
    )
  })

  test('are no longer served once they have expired, and then cover nothing', async (t) => {
    await put(one, 'one.crt', 'one.key')
    const clock = { now: NOW }
    const files = await opened(t, clock)
    assert.ok(files.covers('one.test'))
    clock.now += 100 * DAY_MS
    await until('it is dropped', () => !files.covers('one.test'))
    assert.deepEqual(files.metrics, { served: 0, bad: 1 })
  })

  test('for one name are served as the one that expires last', async (t) => {
    const longer = await made(['one.test'], 200)
    await put(longer, 'a.crt', 'a.key')
    await put(one, 'b.crt', 'b.key')
    const files = await opened(t)
    assert.equal(files.byName.get('one.test')?.cert, longer.certificatePem)
    assert.equal(files.byName.get('www.one.test')?.cert, one.certificatePem)
  })

  test('stay in use while their folder cannot be read, which is logged once', async (t) => {
    await put(one, 'one.crt', 'one.key')
    const files = await opened(t)
    const away = `${folder}-away`
    await rename(folder, away)
    t.after(() => rm(away, { recursive: true, force: true }))
    await until('it is said', () => lines.some((line) => line.includes('ENOENT')))
    assert.ok(files.covers('one.test'))
    await rename(away, folder)
    await put(other, 'other.crt', 'other.key')
    await until('the folder is read again', () => files.covers('a.other.test'))
    assert.equal(lines.filter((line) => line.includes('ENOENT')).length, 1)
  })
})
