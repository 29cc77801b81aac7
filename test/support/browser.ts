/** A real Chromium for tests: that of the npm package, or one on PATH where the package has none for this machine. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'

export interface BrowserOptions {
  /** Names that lead to this machine, as `--host-resolver-rules` writes them. */
  readonly names: string
  /** Further flags of Chromium. */
  readonly flags?: readonly string[]
}

export interface TestChromium {
  launch(options: BrowserOptions): Promise<Browser>
  /** Removes what was unpacked; browsers must be closed before. */
  close(): Promise<void>
}

const onPath = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** Undefined when no browser runs here. */
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

/** Unpacked into a folder of its own: the package would share one with whoever unpacks it at the same moment. */
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
    // Without any font it ends at the first letter; the file of the package names other folders.
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
    // What the package recommends besides would turn off rules of the web that tests are about. Tests may run as root.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', ...resolver, ...flags],
    env: { ...process.env, ...env },
  })
}
