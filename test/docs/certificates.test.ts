/** The page about certificates, with an authority of the tests in place of that of a company. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after } from 'node:test'
import { startAcmeServer } from '../support/acme-server.ts'
import { ApiClient } from '../support/api-client.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { followPage } from './follow.ts'

const identity = await tlsIdentity()
const binding = { keyId: 'kid-1', key: Buffer.from('a key that was agreed on').toString('base64url') }
const acme = await startAcmeServer({ identity, binding })
after(() => acme.stop())

const API_KEY = 'docs_test_api_key_of_the_first_admin_01'

const listening = /Listening: API (\S+), metrics \S+, agents \S+, HTTPS \S+:(\d+), HTTP \S+:(\d+)$/m

followPage('docs/certificates.md', {
  env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY },
  async prepare(reader) {
    const root = join(reader.folder, 'company-root.pem')
    await writeFile(root, identity.ca)
    return {
      'https://ca.internal.example.com/acme/acme/directory': acme.directory,
      '/etc/postern/company-root.pem': root,
      'POSTERN_ACME_EAB_KEY=…': `POSTERN_ACME_EAB_KEY=${binding.key}`,
    }
  },
  checks: {
    'POSTERN_ACME_EAB_KEY=…': async (said) => {
      const [, url = '', https, http] = listening.exec(said) ?? []
      acme.mood.nodes = [{ httpsPort: Number(https), httpPort: Number(http) }]
      const api = new ApiClient(url, API_KEY)
      await api.create('/edges/https', { hostports: ['app.example.com:443'] })
      await until('the name has its certificate', async () => {
        const { tls_certificates: all } = await api.get('/tls_certificates')
        return all.length === 1
      })
    },
  },
})
