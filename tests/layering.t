#!/usr/bin/perl
# The rules of docs/design.md on who may know whom, held over the source tree.
use strict;
use warnings;
use File::Basename;

my $root = $ENV{abs_top_srcdir} // dirname($0) . "/..";
chdir $root or die "$root: $!";

# Rooms, and the rooms whose headers they may include. Tests see all.
my %below = (
    base    => [qw(base)],
    kernels => [qw(kernels base)],
    mpi     => [qw(mpi base)],
    io      => [qw(io base)],
    src     => [qw(src kernels mpi io base)],
);
$below{tests} = [keys %below, "tests"];

# Libraries, and the only rooms or files that may include their headers.
my @libraries = (
    ["HDF5",       qr{^(hdf5|H5\w*)\.h$},                   qr{^io/}],
    ["MPI",        qr{^mpi\.h$},                            qr{^mpi/}],
    ["CUDA",       qr{^(cuda\w*|cu\w+_runtime\w*|mma|cooperative_groups|driver_types)\.h$|^(cuda|cub|cute|cutlass|thrust|nv)/},
                                                            qr{^kernels/|^mpi/\w*nccl\w*\.}],
    ["NCCL",       qr{^nccl\w*\.h$},                        qr{^mpi/\w*nccl\w*\.}],
    ["OpenBLAS",   qr{^(cblas|openblas\w*|lapacke?)\.h$},   qr{^kernels/}],
    ["hwloc",      qr{^hwloc(\.h|/)},                       qr{^mpi/}],
    ["jansson",    qr{^jansson\w*\.h$},                     qr{^src/}],
    ["libdeflate", qr{^libdeflate\.h$},                     qr{^io/}],
);

my (@files, @includes); # includes: [file, line, sort of quote, what]
for my $room (sort keys %below) {
    for my $file (glob("$room/*.c $room/*.h $room/*.cu $room/*.cuh $room/*.def $room/*/*.c $room/*/*.h $room/*/*.cu $room/*/*.cuh")) {
        push @files, $file;
        open(my $in, "<", $file) or die "$file: $!";
        while (<$in>) {
            push @includes, [$file, $., $1, $2] if /^\s*#\s*include\s*(["<])([^">]+)/;
        }
    }
}

my $tests = 0;
my $failed = 0;

# One test: no offender.
sub none {
    my ($name, @offenders) = @_;
    $tests++;
    $failed += @offenders > 0;
    print @offenders ? "not ok" : "ok", " $tests - $name\n";
    print "# $_\n" for @offenders;
}

sub show { my ($file, $line, undef, $what) = @{$_[0]}; return "$file:$line: includes $what" }
sub room { return (split m{/}, $_[0])[0] }

none("there are sources to look at", @files && @includes ? () : ("none below " . `pwd`));

for my $room (sort keys %below) {
    my $allowed = join "|", @{$below{$room}};
    none("$room/ includes only {" . join(", ", sort @{$below{$room}}) . "}",
        map { show($_) } grep { room($_->[0]) eq $room && $_->[2] eq '"' && $_->[3] ne "config.h" && $_->[3] !~ m{^($allowed)/\w} } @includes);
}

none("no include walks up", map { show($_) } grep { $_->[3] =~ m{\.\./} } @includes);

for my $library (@libraries) {
    my ($name, $header, $where) = @$library;
    none("$name is seen only where it belongs",
        map { show($_) } grep { $_->[3] =~ $header && $_->[0] !~ m{^tests/} && $_->[0] !~ $where } @includes);
}

for my $room (sort keys %below) {
    open(my $in, "<", "$room/local.mk") or die "$room/local.mk: $!";
    my %listed = map { $_ => 1 } map { split } <$in>;
    none("every source of $room/ is in $room/local.mk", grep { room($_) eq $room && !$listed{$_} } @files);
}

print "1..$tests\n";
exit($failed > 0);
