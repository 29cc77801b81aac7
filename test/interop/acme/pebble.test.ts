/**
 * Certificates from a real ACME server: every challenge, half of the nonces refused, an account that needs a binding,
 * and certificates that live for seconds, renewed while visitors connect.
 */
import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { accountAt } from '../../../src/control-plane/records/acme-keys.ts'
import { readKeyFile } from '../../../src/lib/secrets/seal.ts'
import type { Json } from '../../support/api-client.ts'
import { queryDatabase } from '../../support/change-database.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { missing, type Pebble, pebblePlace } from './pebble.ts'

/** Long enough for a renewal within the last third on a slow machine, short enough to see one. */
const LIFE_S = 24

describe('pebble', { skip: missing, concurrency: true }, () => {
  let pebble: Pebble
  let platform: Platform
  let byDns: Platform
  let root = ''

  before(async () => {
    pebble = await pebblePlace()
    const command = join(pebble.folder, 'set-record.js')
    await writeFile(command, setRecord(pebble.records))
    await chmod(command, 0o755)
    const acme = {
      flags: {
        'acme-directory': pebble.directory,
        'acme-ca': pebble.caFile,
        'acme-eab-key-id': pebble.binding.keyId,
        'acme-orders-per-hour': '1000',
      },
      env: { POSTERN_ACME_EAB_KEY: pebble.binding.key },
    }
    // Under 127.0.0.2 port 443 is open and port 80 is not.
    platform = await startPlatform({ ...acme, flags: { ...acme.flags, 'https-listen': '0.0.0.0:0' } })
    byDns = await startPlatform({ ...acme, flags: { ...acme.flags, 'acme-dns-command': command } })
    await pebble.start({ httpPort: platform.httpPort, httpsPort: platform.httpsPort, lifeS: LIFE_S })
    await pebble.set('add-a', { host: 'closed.example.com', addresses: ['127.0.0.2'] })
    root = await pebble.root()
  })
  after(async () => {
    await platform?.stop()
    await byDns?.stop()
    await pebble?.stop()
  })

  /** The serial number of the certificate that visitors see, if pebble issued it; rejects when they cannot connect. */
  const shown = (to: Platform, name: string) =>
    new Promise<string | undefined>((resolve, reject) => {
      const socket = connectTls(
        { host: '127.0.0.1', port: to.httpsPort, servername: name, ca: root, rejectUnauthorized: false },
        () => {
          resolve(socket.authorized ? socket.getPeerX509Certificate()?.serialNumber : undefined)
          socket.destroy()
        },
      )
      socket.on('error', reject)
    })
  const edge = (to: Platform, name: string): Promise<Json> =>
    to.admin.create('/edges/https', { hostports: [`${name}:443`] })

  test('http-01, and a renewal while visitors connect, without a failed handshake', async () => {
    await edge(platform, 'open.example.com')
    const first = await until('it has a certificate', () => shown(platform, 'open.example.com'))
    const next = await until('it was renewed', async () => {
      const serial = await shown(platform, 'open.example.com')
      assert.notEqual(serial, undefined, 'visitors always see a certificate of the authority')
      return serial !== first && serial
    })
    assert.ok(next)
    const { tls_certificates: all } = await platform.admin.get('/tls_certificates')
    const names = all.flatMap((each: Json) => each.subject_alternative_names.dns_names)
    assert.equal(names.filter((each: string) => each === 'open.example.com').length, 1)
  })

  test('a revoked certificate is replaced on demand, and no handshake fails', async () => {
    await edge(platform, 'revoked.example.com')
    await until('it has a certificate', () => shown(platform, 'revoked.example.com'))
    const { tls_certificates: all } = await platform.admin.get('/tls_certificates')
    const { id, certificate_pem, serial_number } = all.find(({ subject_alternative_names: names }: Json) =>
      names.dns_names.includes('revoked.example.com'),
    )
    await pebble.revoke(certificate_pem, await accountOf(platform, pebble.directory))
    assert.equal(await pebble.statusOf(serial_number), 'Revoked')
    assert.equal((await platform.admin.send('POST', `/tls_certificates/${id}/renew`)).status, 204)
    const next = await until('it was replaced', async () => {
      const serial = await shown(platform, 'revoked.example.com')
      assert.notEqual(serial, undefined, 'visitors always see a certificate of the authority')
      return BigInt(`0x${serial}`) !== BigInt(`0x${serial_number}`) && serial
    })
    assert.equal(await pebble.statusOf(next), 'Valid')
  })

  test('tls-alpn-01, where port 80 is closed', async () => {
    const { id } = await platform.admin.create('/reserved_domains', {
      domain: 'closed.example.com',
      certificate_management_policy: {},
    })
    await until('the closed port is reported', async () => {
      const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
      return status.provisioning_job?.error_code === 'ERR_CHALLENGE_FAILED'
    })
    const { status } = await platform.admin.send('POST', `/reserved_domains/${id}/retry`)
    assert.equal(status, 204, 'it is tried again at once')
    await until('it has a certificate', async () => {
      const { certificate } = await platform.admin.get(`/reserved_domains/${id}`)
      return certificate !== null
    })
  })

  test("dns-01 for a wildcard, by the operator's program", async () => {
    await edge(byDns, '*.example.com')
    await until('it has a certificate', () => shown(byDns, 'any.example.com'))
  })
})

/** The account of a platform, from its database. */
async function accountOf({ databaseUrl, dataDir }: Platform, directory: string): Promise<{ key: string; url: string }> {
  const [row] = await queryDatabase(databaseUrl, 'select key, url from acme_accounts')
  const sealer = readKeyFile(join(dataDir, 'secret.key'))
  return { key: sealer.open(String(row?.key), accountAt(directory)), url: String(row?.url) }
}

/** A program that updates the name server of pebble, like an operator's program. */
function setRecord(records: string): string {
  return `#!${process.execPath}
const [host, value] = process.argv.slice(2)
const what = process.env.POSTERN_ACME_ACTION === 'present' ? 'set-txt' : 'clear-txt'
fetch('${records}/' + what, { method: 'POST', body: JSON.stringify({ host: host + '.', value }) })
  .then(({ ok }) => process.exit(ok ? 0 : 1))
`
}
