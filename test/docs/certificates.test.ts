/** The page about certificates, with authorities and a name server of the tests in place of public ones. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after } from 'node:test'
import { startAcmeServer } from '../support/acme-server.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { followPage } from './follow.ts'

const identity = await tlsIdentity()
const binding = { keyId: 'kid-1', key: Buffer.from('a key that was agreed on').toString('base64url') }
const company = await startAcmeServer({ identity, binding })
after(() => company.stop())
const world = await startAcmeServer()
after(() => world.stop())
const secret = Buffer.from('a secret of the name server')
const dns = await startDnsServer({ zone: 'example.com', key: { name: 'postern', algorithm: 'hmac-sha256', secret } })
after(() => dns.stop())
world.mood.txt = (record) => dns.txt.get(record) ?? []

const API_KEY = 'docs_test_api_key_of_the_first_admin_01'

const listening = /Listening: API (\S+), metrics \S+, agents \S+, HTTPS \S+:(\d+), HTTP \S+:(\d+)$/m

/** Makes the server that printed `output` get a certificate for a name. */
async function ordered(output: string, name: string, { isEdge }: { isEdge: boolean }): Promise<void> {
  const [, url = '', https, http] = listening.exec(output) ?? []
  const nodes = [{ httpsPort: Number(https), httpPort: Number(http) }]
  for (const { mood } of [world, company]) mood.nodes = nodes
  const api = new ApiClient(url, API_KEY)
  if (isEdge) await api.create('/edges/https', { hostports: [`${name}:443`] })
  await until(`${name} has its certificate`, async () => {
    const { tls_certificates: all } = await api.get('/tls_certificates')
    return all.some((each: Json) => each.subject_alternative_names.dns_names.includes(name))
  })
}

followPage('docs/certificates.md', {
  env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY },
  async prepare(reader) {
    const root = join(reader.folder, 'company-root.pem')
    await writeFile(root, identity.ca)
    return {
      '--acme-directory letsencrypt': `--acme-directory ${world.directory}`,
      '0.0.0.0:443': '127.0.0.1:0',
      '0.0.0.0:80': '127.0.0.1:0',
      'hmac-sha256:postern:…': `hmac-sha256:postern:${secret.toString('base64')}`,
      'ns1.example.com': `127.0.0.1:${dns.port}`,
      'https://ca.internal.example.com/acme/acme/directory': company.directory,
      '/etc/postern/company-root.pem': root,
      'POSTERN_ACME_EAB_KEY=…': `POSTERN_ACME_EAB_KEY=${binding.key}`,
    }
  },
  checks: {
    'postern serve --acme-directory letsencrypt --acme-email': async (output, reader) => {
      await ordered(output, 'one.example.com', { isEdge: true })
      await reader.endAll()
    },
    'POSTERN_ACME_DNS_KEY=': async (output, reader) => {
      await ordered(output, '*.example.com', { isEdge: false })
      await reader.endAll()
    },
    'POSTERN_ACME_EAB_KEY=…': (output) => ordered(output, 'app.example.com', { isEdge: true }),
  },
})
