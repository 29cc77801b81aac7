/**
 * `npm run systemd`: boots a small Debian with its own systemd, installs the package there as docs/vps.md says, and
 * lets `check.sh` test the units of deploy/systemd.
 *
 * Needs root, `debootstrap` and `systemd-nspawn` (Debian: `apt-get install debootstrap systemd-container`), a network, and a
 * few minutes. Nothing outside a temporary folder is changed.
 */
import { spawnSync } from 'node:child_process'
import { appendFileSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack } from '../../../build/bundle.ts'
import { blocksOf } from '../../docs/page.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const PACKAGES = 'ca-certificates,curl,dbus,iproute2,openssl,procps,systemd,systemd-sysv'

/** How long all checks may take, in milliseconds. */
const CHECKS_MS = 600_000

/** Runs the checks once the machine is up, and then turns it off. */
const unit = `[Unit]
After=multi-user.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
WorkingDirectory=/root
Environment=HOME=/root
ExecStart=sh /root/check.sh
StandardOutput=file:/root/checked
StandardError=append:/root/checked
[Install]
WantedBy=default.target
`

const scratch = mkdtempSync(join(tmpdir(), 'postern-systemd-'))
const machine = join(scratch, 'machine')
try {
  install()
  boot()
} finally {
  rmSync(scratch, { recursive: true })
}

function install(): void {
  say('creating a small Debian')
  must('debootstrap', ['--variant=minbase', `--include=${PACKAGES}`, 'stable', machine])
  // debootstrap does not write this file, and nothing resolves `localhost` without it.
  writeFileSync(join(machine, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n')
  say('installing Postern')
  copyFileSync(process.execPath, join(machine, 'usr/local/bin/node'))
  must('chmod', ['0755', join(machine, 'usr/local/bin/node')])
  const tarball = pack(root, scratch)
  must('npm', ['install', '--global', '--ignore-scripts', `--prefix=${join(machine, 'usr/local')}`, tarball])
  // The commands of the page, unchanged.
  const blocks = blocksOf('docs/vps.md')
  const settings = blocks.find(({ about }) => about === 'postern.yml')
  const service = blocks.find(({ text }) => text.includes('systemctl enable --now postern'))
  if (!settings || !service) throw new Error('docs/vps.md has no settings or no service')
  writeFileSync(join(machine, 'root/postern.yml'), settings.text)
  writeFileSync(join(machine, 'root/service.sh'), service.text)
  // npm itself stays here; the page only asks it for its install folder.
  writeFileSync(join(machine, 'usr/local/bin/npm'), '#!/bin/sh\necho /usr/local/lib/node_modules\n', { mode: 0o755 })
  copyFileSync(join(import.meta.dirname, 'check.sh'), join(machine, 'root/check.sh'))
  enable('postern-check.service', unit)
}

function enable(name: string, text: string): void {
  const path = join(machine, 'etc/systemd/system', name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  must('systemctl', [`--root=${machine}`, 'enable', '--quiet', name])
}

function boot(): void {
  say('it is booted')
  const args = [
    '--boot',
    '--register=no',
    '--keep-unit',
    '--private-network',
    '--console=pipe',
    '--quiet',
    '-D',
    machine,
  ]
  const { status, error } = spawnSync('systemd-nspawn', args, { stdio: 'ignore', timeout: CHECKS_MS })
  const printed = readFileSync(join(machine, 'root/checked'), 'utf8')
  console.log(printed.trimEnd())
  if (printed.includes('\n# the units do what they say\n')) return
  throw new Error(`the checks failed (${error?.message ?? status})`)
}

function say(what: string): void {
  console.log(`- ${what}`)
}

function must(name: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(name, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status === 0) return
  appendFileSync(2, `${stdout}${stderr}`)
  throw error ?? new Error(`${name} failed with ${status}`)
}
