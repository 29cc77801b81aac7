/** A real Chromium for tests: from the npm package, or from PATH if the package has none for this machine. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'

export interface BrowserOptions {
  /** Names that resolve to this machine, in the form of `--host-resolver-rules`. */
  readonly names: string
  /** Further flags of Chromium. */
  readonly flags?: readonly string[]
}

export interface TestChromium {
  launch(options: BrowserOptions): Promise<Browser>
  /** Removes the unpacked files. Close all browsers first. */
  close(): Promise<void>
}

const onPath = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Resolves with undefined when there is no browser for this machine. */
export async function findChromium(): Promise<TestChromium | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-chromium-'))
  for (const find of [() => unpacked(folder), ...onPath.map((name) => () => installed(name))]) {
    const found = await find().catch(() => undefined)
    if (found === undefined || !(await isRunning(found))) continue
    return {
      launch: (options) => launch(found, options),
      close: () => rm(folder, { recursive: true, force: true }),
    }
  }
  await rm(folder, { recursive: true, force: true })
  return undefined
}

interface Program {
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

/** Unpacks into a separate folder: the package would use one that other processes may be unpacking into. */
async function unpacked(folder: string): Promise<Program> {
  const { default: chromium, inflate } = await import('@sparticuz/chromium')
  const before = process.env.TMPDIR
  process.env.TMPDIR = folder
  try {
    chromium.setGraphicsMode = false
    const path = await chromium.executablePath()
    // Libraries that a small machine may lack.
    const packed = join(import.meta.dirname, '../../node_modules/@sparticuz/chromium/bin/al2023.tar.br')
    const libraries = join(await inflate(packed), 'lib')
    // Chromium crashes without a font, and the configuration in the package names other folders.
    const fonts = join(folder, 'fonts.conf')
    await writeFile(fonts, `<fontconfig><dir>${folder}/fonts</dir><cachedir>${folder}/cache</cachedir></fontconfig>`)
    return { path, env: { FONTCONFIG_FILE: fonts, ...(!(await loads(path)) && { LD_LIBRARY_PATH: libraries }) } }
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}

async function installed(name: string): Promise<Program> {
  const { stdout } = await promisify(execFile)('which', [name])
  return { path: stdout.trim(), env: {} }
}

async function loads(path: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)('ldd', [path])
  return !stdout.includes('not found')
}

async function isRunning(program: Program): Promise<boolean> {
  try {
    await (await launch(program, { names: '' })).close()
    return true
  } catch {
    return false
  }
}

async function launch({ path, env }: Program, { names, flags = [] }: BrowserOptions): Promise<Browser> {
  const { chromium } = await import('playwright-core')
  const resolver = names === '' ? [] : [`--host-resolver-rules=${names}`]
  return chromium.launch({
    executablePath: path,
    // The other recommended flags switch off web security, which tests are about. Root needs `--no-sandbox`.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', ...resolver, ...flags],
    env: { ...process.env, ...env },
  })
}
