/**
 * An outside check of ngrok's Terraform provider against its own Postern on loopback: the resources in a folder here
 * are applied, changed and destroyed, and every plan in between is empty.
 *
 *     node test/outside/terraform/run.ts --terraform PATH --provider 0.3=FOLDER --provider 0.8=FOLDER
 *
 * FOLDER holds the program `terraform-provider-ngrok` of that version. docs/migrate.md says where it comes from.
 */
import { type SpawnOptions, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { resources } from '../../../src/control-plane/resources/index.ts'
import type { ApiClient, Json } from '../../support/api-client.ts'
import { makeIdentity } from '../../support/make-certificate.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'

/** The variables of the two rounds; everything that a resource lets one change differs between them. */
const rounds = [
  { words: 'first', active: true },
  { words: 'second', active: false },
] as const

const { values } = parseArgs({
  options: { terraform: { type: 'string', default: 'terraform' }, provider: { type: 'string', multiple: true } },
})
const checks = (values.provider ?? []).map((each) => {
  const [version = '', folder = ''] = each.split('=')
  return { version, folder: resolve(folder) }
})
if (checks.length === 0) throw new Error('name a provider: --provider 0.8=FOLDER')

for (const each of checks) await check(each)

async function check({ version, folder }: { readonly version: string; readonly folder: string }): Promise<void> {
  console.log(`provider ${version}`)
  const platform = await startPlatform({ flags: { 'tcp-ports': '20000-20100' } })
  const work = await mkdtemp(join(tmpdir(), 'postern-terraform-'))
  try {
    await cp(join(import.meta.dirname, version), work, { recursive: true })
    await writeFile(
      join(work, 'cli.tfrc'),
      `provider_installation {\n  dev_overrides { "ngrok/ngrok" = "${folder}" }\n}\n`,
    )
    const material = await makeMaterial()
    const before = await everything(platform.admin)
    for (const round of rounds) {
      await writeFile(join(work, 'terraform.tfvars.json'), JSON.stringify({ ...round, ...material }))
      await terraform(platform, work, 'apply', '-auto-approve')
      console.log(`  ${round.words}: applied`)
      await terraform(platform, work, 'plan', '-detailed-exitcode')
      console.log(`  ${round.words}: the next plan is empty`)
    }
    await terraform(platform, work, 'destroy', '-auto-approve')
    const left = (await everything(platform.admin)).filter((id) => !before.includes(id))
    if (left.length > 0) throw new Error(`these are left: ${left.join(', ')}`)
    console.log('  destroyed: nothing is left')
  } finally {
    await platform.stop()
    await rm(work, { recursive: true, force: true })
  }
}

/** Keys and certificates, the same in both rounds: no resource lets one change them. */
async function makeMaterial(): Promise<Json> {
  const leaf = await makeIdentity({ dnsNames: ['shop.terraform.example.com'] })
  const ca = await makeIdentity({ name: 'CN=Visitors', isCa: true })
  const text = (value: string) => Buffer.from([0, 0, 0, value.length, ...Buffer.from(value)])
  const blob = Buffer.concat([text('ssh-ed25519'), Buffer.from([0, 0, 0, 32]), randomBytes(32)])
  return {
    certificate_pem: leaf.certificatePem,
    private_key_pem: leaf.privateKeyPem,
    ca_pem: ca.certificatePem,
    ssh_public_key: `ssh-ed25519 ${blob.toString('base64')} terraform`,
  }
}

/** Runs one command; its output is shown when it fails. A plan that is not empty fails. */
async function terraform(platform: Platform, cwd: string, ...args: readonly string[]): Promise<void> {
  const options: SpawnOptions = {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: cwd,
      TF_CLI_CONFIG_FILE: join(cwd, 'cli.tfrc'),
      TF_IN_AUTOMATION: '1',
      CHECKPOINT_DISABLE: '1',
      NGROK_API_BASE_URL: platform.url,
      NGROK_API_KEY: platform.apiKey,
    },
  }
  const child = spawn(values.terraform, [...args, '-no-color', '-input=false'], options)
  let printed = ''
  child.stdout?.on('data', (bytes) => (printed += bytes))
  child.stderr?.on('data', (bytes) => (printed += bytes))
  const { promise, resolve: done, reject } = Promise.withResolvers<number | null>()
  child.on('error', reject).on('close', done)
  const code = await promise
  if (code !== 0) throw new Error(`terraform ${args.join(' ')} ended with ${code}:\n${printed}`)
}

/** The ids of all stored resources. */
async function everything(api: ApiClient): Promise<string[]> {
  const lists = resources.filter(({ verbs }) => verbs.includes('update') && verbs.includes('list'))
  const found = await Promise.all(lists.map(async ({ path, listKey }) => (await api.get(path))[listKey ?? '']))
  return found.flat().map(({ id }: Json) => id)
}
