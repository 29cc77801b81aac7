/** The pages for operators of a server, followed from top to bottom. */
import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { readSettings } from '../../src/server/config/read-settings.ts'
import { ApiClient } from '../support/api-client.ts'
import { postgresUrl } from '../support/databases.ts'
import { openLogins } from '../support/logins.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { followPage } from './follow.ts'
import type { Reader } from './reader.ts'
import { service } from './service.ts'

/** Dropped when this file is done. */
const database = await postgresUrl()

const hello = (output: string) => assert.match(output, /^hello$/m)

/** The HTTPS port of the server that the reader started. */
function httpsPort({ printed }: Reader): string {
  return /^Listening: .* HTTPS \S+:(\d+),/m.exec(printed)?.[1] ?? ''
}

followPage('docs/vps.md', {
  async prepare(reader) {
    const { ca, cert, key } = await tlsIdentity(['*.tunnels.example.com'])
    reader.write('known-to-browsers.pem', ca)
    reader.write('fullchain.pem', cert)
    reader.write('privkey.pem', key)
    return {
      3000: await service(reader),
      '/var/lib/postern': join(reader.folder, 'data'),
      'tunnels.example.com:7443': 'localhost:7443',
    }
  },
  checks: {
    // Like the DNS records of step 1.
    'postern serve --config': (_output, reader) =>
      reader.write(
        '.curlrc',
        `silent\nshow-error\nconnect-to = "app.tunnels.example.com:443:127.0.0.1:${httpsPort(reader)}"\n`,
      ),
    'scp root@tunnels.example.com': (_output, { folder }) =>
      copyFileSync(join(folder, 'data/ca.pem'), join(folder, 'ca.pem')),
    'postern http 3000': (output) => assert.match(output, /https:\/\/app\.tunnels\.example\.com:/),
    'curl --cacert ca.pem': hello,
    'export POSTERN_API_KEY': async (_output, reader) => {
      // The API answers when the certificate is stored; it is served a moment later.
      const ask = () => reader.run('curl --cacert known-to-browsers.pem https://app.tunnels.example.com/')
      hello(await until('the new certificate is served', () => ask().catch(() => undefined)))
    },
    'curl -s http://127.0.0.1:7400/readyz': (output) => assert.match(output, /"status":"ready"/),
  },
})

followPage('docs/operate.md', {
  testedBy: { ini: 'the units in deploy/systemd have tests of their own' },
  env: { POSTERN_BACKUP_PASSPHRASE: 'correct horse battery' },
  async prepare(reader) {
    await reader.stays('postern serve')
    const dataDir = join(reader.folder, 'data')
    const logins = await openLogins({ databaseUrl: `sqlite:${join(dataDir, 'postern.db')}`, dataDir })
    await logins.logIn({ secret: 'one', user: { id: 'u-1' } })
    await logins.logIn({ secret: 'two', user: { id: 'u-2' } })
    await logins.close()
    const [, apiKey = ''] = /^ {2}Admin API key +(\S+)$/m.exec(reader.printed) ?? []
    const [, api = ''] = /^Listening: API (\S+),/m.exec(reader.printed) ?? []
    const admin = new ApiClient(api, apiKey)
    const { application_sessions: sessions } = await admin.get('/app/sessions')
    const { application_users: users } = await admin.get('/app/users')
    reader.meet({ POSTERN_API_KEY: apiKey })
    const [old, renewed] = [await tlsIdentity(['app.example.com']), await tlsIdentity(['app.example.com'])]
    const { id: certificate } = await admin.create('/tls_certificates', {
      certificate_pem: old.cert,
      private_key_pem: old.key,
    })
    reader.write('renewed.json', JSON.stringify({ certificate_pem: renewed.cert, private_key_pem: renewed.key }))
    return {
      'cert_…': certificate,
      'usr_…': /^ {2}Admin +(usr_\S+)$/m.exec(reader.printed)?.[1] ?? '',
      'as_…': sessions[0].id,
      'au_…': users.at(-1).id,
      'postgres://postern:…@db.example.com/postern': database,
      '/var/lib/postern': dataDir,
      '/srv/postern': join(reader.folder, 'restored'),
    }
  },
  before: {
    // A separate server with its own data.
    'postern serve --database-url'(reader) {
      reader.meet({ POSTERN_DATA_DIR: join(reader.folder, 'second'), POSTERN_CLUSTER_LISTEN: '127.0.0.1:0' })
      return ''
    },
    async 'postern admin rotate-key'(reader) {
      reader.meet({ POSTERN_DATA_DIR: join(reader.folder, 'data') })
      await reader.endAll()
      return ''
    },
    'postern api tls-certificates list': (reader) => reader.stays('postern serve'),
  },
  checks: {
    // The following servers use SQLite.
    'postern serve --database-url': (_output, reader) => reader.meet({ POSTERN_CLUSTER_LISTEN: '' }),
    'postern admin list-users': (output) => assert.match(output, /Ada Lovelace/),
    'postern admin rotate-key': (output) => assert.match(output, /^The key file was replaced/m),
    'postern backup': (output) => assert.match(output, /it holds the key and \d+ rows/),
  },
})

followPage('docs/config.md', {
  checks: {
    'data_dir: ': (text, reader) => {
      reader.write('postern.yml', text)
      const read = readSettings({ flags: { config: 'postern.yml' }, env: {}, cwd: reader.folder })
      assert.equal(read.dataDir, '/var/lib/postern')
      assert.equal(read.domain, 'tunnels.example.com')
      assert.equal(read.tlsMinVersion, '1.3')
    },
  },
})
