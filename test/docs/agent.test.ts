/** The page about the agent, followed from top to bottom. */
import assert from 'node:assert/strict'
import { verify } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { releaseKey } from '../../src/agent/update/release-key.ts'
import { releaseSource } from '../../src/agent/update/release-source.ts'
import { readReleases, signedText } from '../../src/agent/update/releases.ts'
import { portToKeep } from '../support/free-port.ts'
import { followPage } from './follow.ts'
import type { Reader } from './reader.ts'
import { service } from './service.ts'

const online = (output: string, ...urls: RegExp[]) => {
  for (const url of urls) assert.match(output, url)
  assert.doesNotMatch(output, /refused/)
}

/** The authtoken that the first start printed. */
function authtokenIn({ printed }: Reader): string {
  return /^ {2}Agent authtoken +(\S+)$/m.exec(printed)?.[1] ?? ''
}

const ofNgrokFiles = 'src/agent/config/ngrok-file.test.ts'

followPage('docs/agent.md', {
  testedBy: {
    'postern start --config ~/.config/ngrok/ngrok.yml': ofNgrokFiles,
    'version: 3\n': ofNgrokFiles,
    'ngrok.yml:': ofNgrokFiles,
  },
  env: { POSTERN_OAUTH_CLIENT_SECRET: 's3cret', POSTERN_OIDC_CLIENT_SECRET: 's3cret' },
  async prepare(reader) {
    await reader.stays('postern serve')
    copyFileSync(join(reader.folder, 'data/ca.pem'), join(reader.folder, 'ca.pem'))
    reader.write('postern-0.2.0.tgz', 'an archive')
    const authtoken = authtokenIn(reader)
    return {
      3000: await service(reader),
      4040: String(await portToKeep()),
      'tunnels.example.com:7443': 'localhost:7443',
      'authtoken: …': `authtoken: ${authtoken}`,
      "authtoken: '…'": `authtoken: '${authtoken}'`,
    }
  },
  checks: {
    'postern login\n': async (_said, reader) => {
      const [, port = ''] = /, agents \S+:(\d+),/.exec(reader.printed) ?? []
      await reader.run(`postern login --server localhost:${port} --ca ca.pem --authtoken ${authtokenIn(reader)}`)
    },
    'postern http 3000 ': (output) => {
      online(output, /https:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.localhost:/, /https:\/\/app\.example\.com:/)
      online(output, /tcp:\/\/localhost:2\d{4}/, /tls:\/\/app\.example\.com:/)
    },
    // Each is ended once the first of its tunnels is online.
    'postern start --config postern-agent.yml': (output) => online(output, /tunnel online tunnel=(web|ssh|shop)/),
    'postern start --config login.yml': (output) => online(output, /https:\/\/app\.example\.com:/),
    'curl -s http://127.0.0.1:4040/api/tunnels': (output) => {
      assert.match(output, /"public_url":"https:.*"uri":"\/api\/tunnels"/)
      assert.match(output, /"uri":"\/api\/requests\/http"/)
      assert.match(output, /"uri":"\/api\/exchanges"/)
    },
    '{ "releases"': async (_said, { folder }) => {
      const [release] = await readReleases(releaseSource(folder))
      assert.equal(release?.version, '0.2.0')
    },
    'openssl genpkey': (output, { folder }) => {
      const [key = '', signature = ''] = output.match(/^[A-Za-z0-9+/]{40,}=*/gm) ?? []
      const archive = readFileSync(join(folder, 'postern-0.2.0.tgz'))
      assert.ok(verify(null, signedText('0.2.0', archive), releaseKey(key), Buffer.from(signature, 'base64')))
    },
    'node tunnels.ts': (output) => {
      online(output, /^https:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.localhost:/m, /^https:\/\/app\.localhost:/m, /^online$/m)
    },
  },
})
