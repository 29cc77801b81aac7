/** Records in a zone of a real BIND server, changed by signed updates. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { dnsUpdate } from '../../../src/control-plane/acme/dns-update.ts'
import { dnsClient } from '../../../src/lib/dns/dns-client.ts'
import { dnsType, readTxt } from '../../../src/lib/dns/dns-message.ts'
import { portsToKeep } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'

const skip = spawnSync('named', ['-V']).error !== undefined && 'BIND (`named`) is not on PATH'

const secret = Buffer.from('a secret of the name server')
const key = { name: 'postern', algorithm: 'hmac-sha512', secret } as const
const record = '_acme-challenge.app.example.com'

test('a real name server accepts updates, and refuses those that the key does not permit', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bind-'))
  // The test itself holds the first port of a block.
  const [, port = 0] = await portsToKeep(2)
  await writeFile(
    join(folder, 'named.conf'),
    `options { directory "${folder}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion no;
       pid-file none; session-keyfile none; managed-keys-directory "${folder}"; };
     controls { };
     key "postern" { algorithm hmac-sha512; secret "${secret.toString('base64')}"; };
     zone "example.com" { type primary; file "${folder}/zone";
       update-policy { grant postern. name ${record}. TXT; }; };`,
  )
  const zone = '$TTL 60\n@ IN SOA ns.test. ops.test. 1 60 60 60 60\n@ IN NS ns.invalid.\n'
  await writeFile(join(folder, 'zone'), zone)
  const named = spawn('named', ['-f', '-n', '1', '-c', join(folder, 'named.conf')], { stdio: 'ignore' })
  t.after(async () => {
    named.kill('SIGKILL')
    if (named.exitCode === null && named.signalCode === null) await once(named, 'exit')
    await rm(folder, { recursive: true, force: true })
  })
  const server = { host: '127.0.0.1', port }
  const looker = dnsClient({ server, now: Date.now, limits: { udpMs: [500], tcpMs: 500 } })
  await until('it answers', async () => {
    assert.equal(named.exitCode, null)
    return (await looker.look('example.com', dnsType.soa).catch(() => undefined))?.answers.length === 1
  })
  const values = async () => (await looker.look(record, dnsType.txt)).answers.map(({ data }) => readTxt(data)).sort()

  const records = dnsUpdate({ server, key, now: Date.now })
  await records.present(record, 'one')
  await records.present(record, 'two')
  assert.deepEqual(await values(), ['one', 'two'])
  await records.cleanup(record, 'one')
  assert.deepEqual(await values(), ['two'])
  await assert.rejects(records.present('_acme-challenge.other.example.com', 'x'), /REFUSED/)
  await assert.rejects(records.present('_acme-challenge.example.org', 'x'), /REFUSED/)
  const wrong = dnsUpdate({ server, key: { ...key, secret: Buffer.from('another secret') }, now: Date.now })
  await assert.rejects(wrong.present(record, 'x'), /NOTAUTH.*BADSIG/)
  const unknown = dnsUpdate({ server, key: { ...key, name: 'nobody' }, now: Date.now })
  await assert.rejects(unknown.present(record, 'x'), /NOTAUTH.*BADKEY/)
  const late = dnsUpdate({ server, key, now: () => Date.now() - 3_600_000 })
  await assert.rejects(late.present(record, 'x'), /BADTIME|another time/)
})
