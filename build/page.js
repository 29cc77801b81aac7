/**
 * Builds the dashboard and the agent's page: `src/page/` into `built/`. npm runs it after installing the packages
 * (`prepare`).
 *
 * Plain JavaScript, since npm may run it under a Node that cannot run TypeScript. Without the packages that build it or
 * a binary of theirs for this machine, the server still runs: it logs at startup that the page is missing. An
 * agent shows a plain page instead of its own.
 */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Undefined when Vite is not installed, or does not run here. */
async function vite() {
  try {
    return await import('vite')
  } catch (error) {
    console.error(`The dashboard and the agent's page were not built, since Vite does not run here: ${error.message}`)
    return undefined
  }
}

/** Each page: the folder of its document, and its output folder. The agent's page shares code with the dashboard. */
const pages = [
  { from: join('src', 'page'), to: join('built', 'page') },
  { from: join('src', 'page', 'agent'), to: join('built', 'agent-page') },
]

const { build } = (await vite()) ?? {}
for (const { from, to } of pages) {
  await build?.({
    configFile: false,
    envDir: false,
    root: join(root, from),
    // Relative addresses, since `--api-url` may have a path.
    base: './',
    publicDir: false,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: join(root, to),
      emptyOutDir: true,
      // Files named by their content go below the path where they are served (`src/control-plane/api/page-files.ts`,
      // `src/agent/inspect/built-page.ts`).
      assetsDir: 'page',
      target: 'es2023',
      cssTarget: ['chrome123', 'firefox121', 'safari17.5'],
      modulePreload: false,
      // The content security policy allows no `data:` addresses.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
    },
  })
}
