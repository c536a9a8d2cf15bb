/** The roles of a treegrid. A table could not have the lines of the axis behind its rows, nor rows that are grids. */
export const TREEGRID = { role: "treegrid" } as const;
export const ROWGROUP = { role: "rowgroup" } as const;
export const ROW = { role: "row" } as const;
export const COLUMN_HEADER = { role: "columnheader" } as const;
export const CELL = { role: "gridcell" } as const;
