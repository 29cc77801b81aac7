/** A value as somebody wrote it, and where: `--data-dir`, `POSTERN_DATA_DIR`, `postern.yml line 3`. */
export interface Given {
  readonly text: string
  readonly from: string
}
