/**
 * Builds the dashboard: `src/page/` into `built/page/`. npm runs it after it installed the packages (`prepare`).
 *
 * Plain JavaScript, since npm may run it under a Node that reads no TypeScript. Without the packages that build it, or
 * where they have no binary for this machine, the server still runs: it says at its start that the page is missing.
 */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Undefined when Vite is not installed, or does not run here. */
async function vite() {
  try {
    return await import('vite')
  } catch (error) {
    console.error(`The dashboard was not built, since Vite does not run here: ${error.message}`)
    return undefined
  }
}

const { build } = (await vite()) ?? {}
await build?.({
  configFile: false,
  envDir: false,
  root: join(root, 'src', 'page'),
  // Relative addresses, since `--api-url` may have a path.
  base: './',
  publicDir: false,
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: join(root, 'built', 'page'),
    emptyOutDir: true,
    // What is named by its content lies under the path where the server serves it (`src/api/page-files.ts`).
    assetsDir: 'page',
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    // The content security policy allows no `data:` addresses.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
})
