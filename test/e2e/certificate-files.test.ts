/** Certificates in files on the server's machine, beside uploaded and issued ones. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { type AcmeServer, startAcmeServer } from '../support/acme-server.ts'
import type { Json } from '../support/api-client.ts'
import { metric } from '../support/metrics.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { type TlsIdentity, tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { visit } from '../support/visitor.ts'

let acme: AcmeServer
let platform: Platform
let folder: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-files-'))
  acme = await startAcmeServer()
  const agents = { 'agent-names': 'agents.example.com', 'agent-certificate': 'public' }
  const flags = { 'certificate-dir': folder, 'acme-directory': acme.directory, ...agents }
  platform = await startPlatform({ flags })
  acme.mood.nodes = [platform]
})
after(async () => {
  await platform.stop()
  await acme.stop()
  await rm(folder, { recursive: true, force: true })
})

const put = async (name: string, { cert, key }: TlsIdentity) => {
  const at = join(folder, 'live', name)
  await mkdir(at, { recursive: true })
  await writeFile(join(at, 'fullchain.pem'), cert)
  await writeFile(join(at, 'privkey.pem'), key)
}

const edge = async (...names: string[]) => {
  const { admin, httpsPort } = platform
  const backend = await admin.create('/backends/http_response', { body: 'hello', status_code: 200 })
  const { id } = await admin.create('/edges/https', { hostports: names.map((name) => `${name}:${httpsPort}`) })
  const match = { match_type: 'path_prefix', match: '/' }
  await admin.create(`/edges/https/${id}/routes`, { ...match, backend: { backend_id: backend.id } })
}

const isTrusted = (name: string, ca: string) =>
  visit(`https://${name}:${platform.httpsPort}`, { ca }).then(
    ({ text }) => text === 'hello',
    () => false,
  )

test('a file is served and reloaded when it changes; an upload wins, and a name without a file gets an order', async () => {
  const first = await tlsIdentity(['file.example.com'])
  await put('file.example.com', first)
  await until('the file is read', () => platform.log.some((line) => line.includes('certificate file loaded')))
  await edge('file.example.com', 'issued.example.com')
  await until('the file is served', () => isTrusted('file.example.com', first.ca))
  await until('the other name has a certificate', () => isTrusted('issued.example.com', acme.ca))
  const { tls_certificates: all } = await platform.admin.get('/tls_certificates')
  const names = all.flatMap((each: Json) => each.subject_alternative_names.dns_names)
  assert.ok(!names.includes('file.example.com'), 'nothing is ordered for a name that has a file')

  const second = await tlsIdentity(['file.example.com'])
  await put('file.example.com', second)
  await put('issued.example.com', { ...second, key: first.key })
  await until('the new file is served', () => isTrusted('file.example.com', second.ca))
  const bad = 'postern_certificate_files{state="bad"}'
  await until('the bad pair is counted', async () => (await metric(platform.metricsUrl, bad)) === 1)
  assert.ok(await isTrusted('issued.example.com', acme.ca))

  const uploaded = await tlsIdentity(['file.example.com'])
  const pair = { certificate_pem: uploaded.cert, private_key_pem: uploaded.key }
  await platform.admin.create('/tls_certificates', pair)
  await until('the uploaded one is served', () => isTrusted('file.example.com', uploaded.ca))
})

test('agents are shown the certificate of the name that they ask for, and one of our own authority for other names', async () => {
  const port = Number(platform.agents.slice(platform.agents.lastIndexOf(':') + 1))
  const isShown = async (servername: string, ca: string) => {
    const socket = connectTls({ host: '127.0.0.1', port, servername, ca })
    const shown = await Promise.race([
      once(socket, 'secureConnect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    return shown
  }
  await until('the door of agents has its certificate', () => isShown('agents.example.com', acme.ca))
  assert.ok(await isShown('localhost', platform.ca))
  const agent = await ownDriver.connect({ server: platform.agents, ca: platform.ca, authtoken: platform.authtoken })
  await agent.close()
})
